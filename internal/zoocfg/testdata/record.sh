#!/bin/sh
# Records what ZooKeeper's own parser says about every file of testdata/cases.
#
#   testdata/record.sh <directory with ZooKeeper 3.9.5's jars>
#
# It works on a copy, because the parser writes backups beside the files it reads.
set -eu
jars=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -r "$here" "$copy/testdata"
cd "$copy"
# The Prometheus provider is a module of its own; its name is all that is asked for.
mkdir -p stub/org/apache/zookeeper/metrics/prometheus
echo 'package org.apache.zookeeper.metrics.prometheus; public class PrometheusMetricsProvider {}' \
	>stub/org/apache/zookeeper/metrics/prometheus/PrometheusMetricsProvider.java
javac -d stub stub/org/apache/zookeeper/metrics/prometheus/*.java
java -Dfile.encoding=UTF-8 -cp "$jars/*:stub" testdata/Verdict.java >log.txt 2>&1 || { cat log.txt; exit 1; }
mv verdicts.json "$here/verdicts.json"
