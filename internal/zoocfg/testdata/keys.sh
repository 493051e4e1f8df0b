#!/bin/sh
# Prints every key that the sources of ZooKeeper 3.9.5 read from zoo.cfg or from a
# system property that zoo.cfg can set, one a line. The argument is the directory in
# which zookeeper-3.9.5-sources.jar (Maven Central) was unpacked.
set -eu
cd "$1/org/apache/zookeeper"
{
	# Any other key of zoo.cfg becomes the property of this name behind "zookeeper.".
	grep -rhoE '"zookeeper\.[A-Za-z0-9_.-]*[A-Za-z0-9]"' . | sed 's/"zookeeper\.//; s/"//'
	grep -ohE 'key\.equals\("[^"]+"\)' server/quorum/QuorumPeerConfig.java | sed 's/.*("//; s/".*//'
	grep -ohE 'getConfigPrefix\(\) \+ "[^"]+"' common/X509Util.java | sed 's/.*"\(.*\)"/ssl.\1\nssl.quorum.\1/'
	grep -ohE 'getConfigPrefix\(\) \+ "[^"]+"' common/ClientX509Util.java | sed 's/.*"\(.*\)"/ssl.\1/'
	grep -ohE '"quorum\.auth\.[^"]+"' server/quorum/auth/QuorumAuth.java | tr -d '"'
	grep -rhoE '"(znode\.container|jvm\.pause|fsync|leader|follower|readonlymode|java\.security)\.[A-Za-z.-]+"' . | tr -d '"'
	# Of the Prometheus provider, which is in another jar.
	for k in httpHost httpPort exportJvmInfo numWorkerThreads maxQueueSize workerShutdownTimeoutMs; do
		echo "metricsProvider.$k"
	done
	printf '%s\n' jute.maxbuffer jute.maxbuffer.extrasize server.N group.N weight.N authProvider.N
} | grep -vxE 'authProvider|ssl|ssl\.quorum|configuration|version|test\..*|testingonly\..*|java\.security\.login\.auth\.config|server\.(principal|realm)' | sort -u
