#!/usr/bin/env bash
# Installs the jars of Apache ZooKeeper 3.9.5, the real server that the
# conformance tests compare with, from Maven Central.
#
#   install.sh            installs if nothing is there yet; prints the directory
#   install.sh 3.4.14     the same for another release, to take over from
#
# Idempotent: a finished installation is left alone. Atomic: everything is
# gathered in a temporary directory beside the target and renamed at the end,
# so a broken download or two runs at once never leave half a set of jars.
# ZKGO_ORACLE_DIR overrides the target directory.
set -euo pipefail

version=${1:-3.9.5}
# The suffix is the revision of the list of jars below: raise it with the list.
target=${XDG_CACHE_HOME:-$HOME/.cache}/zkgo-oracle/$version-1
[ $# -gt 0 ] || target=${ZKGO_ORACLE_DIR:-$target}

if [ -e "$target/.complete" ]; then
  echo "$target"
  exit 0
fi
for tool in java mvn; do
  command -v "$tool" >/dev/null || { echo "install.sh: $tool is not installed" >&2; exit 3; }
done

mkdir -p "$(dirname "$target")"
tmp=$(mktemp -d "$(dirname "$target")/.install-XXXXXX")
trap 'rm -rf "$tmp"' EXIT

# ZooKeeper's own pom leaves out (scope "provided") what its binary release
# ships: the admin server (jetty, jackson), metrics, snappy, the shell (jline,
# commons-cli). The versions are those of its parent pom.
cat >"$tmp/pom.xml" <<'POM'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>zkgo</groupId><artifactId>oracle</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.zookeeper</groupId><artifactId>zookeeper</artifactId><version>3.9.5</version></dependency>
    <dependency><groupId>ch.qos.logback</groupId><artifactId>logback-classic</artifactId><version>1.3.15</version></dependency>
    <dependency><groupId>commons-cli</groupId><artifactId>commons-cli</artifactId><version>1.5.0</version></dependency>
    <dependency><groupId>org.eclipse.jetty</groupId><artifactId>jetty-server</artifactId><version>9.4.58.v20250814</version></dependency>
    <dependency><groupId>org.eclipse.jetty</groupId><artifactId>jetty-servlet</artifactId><version>9.4.58.v20250814</version></dependency>
    <dependency><groupId>org.eclipse.jetty</groupId><artifactId>jetty-client</artifactId><version>9.4.58.v20250814</version></dependency>
    <dependency><groupId>com.fasterxml.jackson.core</groupId><artifactId>jackson-databind</artifactId><version>2.15.2</version></dependency>
    <dependency><groupId>org.jline</groupId><artifactId>jline</artifactId><version>3.25.1</version></dependency>
    <dependency><groupId>io.dropwizard.metrics</groupId><artifactId>metrics-core</artifactId><version>4.1.12.1</version></dependency>
    <dependency><groupId>org.xerial.snappy</groupId><artifactId>snappy-java</artifactId><version>1.1.10.5</version></dependency>
    <!--PROMETHEUS-->
  </dependencies>
</project>
POM

# The other releases only serve clients and each other, so they need less. Those from 3.5 to 3.7
# bring no logger.
cat >"$tmp/pom-other.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>zkgo</groupId><artifactId>oracle</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.zookeeper</groupId><artifactId>zookeeper</artifactId><version>$version</version></dependency>
    $(case $version in 3.[567].*) echo "<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>" ;; esac)
    <dependency><groupId>io.dropwizard.metrics</groupId><artifactId>metrics-core</artifactId><version>4.1.12.1</version></dependency>
    <dependency><groupId>org.xerial.snappy</groupId><artifactId>snappy-java</artifactId><version>1.1.10.5</version></dependency>
  </dependencies>
</project>
POM

# fetch fills $tmp/lib with every jar of the pom and of what it depends on.
fetch() {
  mvn -q -B -f "$tmp/$1" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$tmp/lib" >"$tmp/mvn.log" 2>&1
}

# The Prometheus provider is only needed to compare metrics: its absence from a
# mirror must not keep the server away.
sed 's|<!--PROMETHEUS-->|<dependency><groupId>org.apache.zookeeper</groupId><artifactId>zookeeper-prometheus-metrics</artifactId><version>3.9.5</version></dependency>|' \
  "$tmp/pom.xml" >"$tmp/pom-prometheus.xml"
if [ "$version" != 3.9.5 ]; then
  fetch pom-other.xml || { cat "$tmp/mvn.log" >&2; exit 1; }
elif ! fetch pom-prometheus.xml; then
  rm -rf "$tmp/lib"
  fetch pom.xml || { cat "$tmp/mvn.log" >&2; exit 1; }
fi
test -e "$tmp/lib/zookeeper-$version.jar" || { echo "install.sh: zookeeper-$version.jar did not arrive" >&2; exit 1; }

# The server writes its log to standard output, which the caller redirects.
cat >"$tmp/lib/logback.xml" <<'LOG'
<configuration>
  <appender name="OUT" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{HH:mm:ss.SSS} %-5p %c{1} %m%n</pattern></encoder>
  </appender>
  <root level="${zookeeper.root.level:-WARN}"><appender-ref ref="OUT"/></root>
</configuration>
LOG
echo org.slf4j.simpleLogger.defaultLogLevel=warn >"$tmp/lib/simplelogger.properties"
cat >"$tmp/lib/log4j.properties" <<'LOG'
log4j.rootLogger=WARN, OUT
log4j.appender.OUT=org.apache.log4j.ConsoleAppender
log4j.appender.OUT.layout=org.apache.log4j.PatternLayout
log4j.appender.OUT.layout.ConversionPattern=%d{HH:mm:ss,SSS} %-5p %c{1} %m%n
LOG
touch "$tmp/lib/.complete"
chmod 755 "$tmp/lib"
# -T: never move INTO a directory that another run finished first. Such a
# directory is as good as ours.
mv -T "$tmp/lib" "$target" 2>/dev/null || test -e "$target/.complete"
echo "$target"
