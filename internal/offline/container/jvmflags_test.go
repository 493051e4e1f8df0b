package container

import (
	"reflect"
	"strings"
	"testing"
)

func TestJVMFlags(t *testing.T) {
	t.Parallel()
	properties, unused := jvmFlags("-Xms1g -XX:+UseG1GC -server -Dcom.sun.management.jmxremote.port=1 -Djava.rmi.server.hostname=h " +
		"-Dzookeeper.4lw.commands.whitelist=* -Dzookeeper.sasl.serverconfig=a=b\n-Djute.maxbuffer=0x100000\t-Djute.maxbuffers=1 " +
		"-Dznode.container.maxPerMinute=5 -Djava.security.auth.login.config=/jaas.conf -Dreadonlymode.enabled -DsuperUser=x " +
		"-Djava.security.krb5.conf=/k -javaagent:jmx.jar=7070:a.yaml @file")
	want := []property{
		{"4lw.commands.whitelist", "*", true}, {"sasl.serverconfig", "a=b", true}, {"jute.maxbuffer", "0x100000", false},
		{"znode.container.maxPerMinute", "5", false}, {"java.security.auth.login.config", "/jaas.conf", false}, {"readonlymode.enabled", "", false},
	}
	if !reflect.DeepEqual(properties, want) {
		t.Errorf("properties %v", properties)
	}
	if got := strings.Join(unused, " "); got != "jute.maxbuffers superUser java.security.krb5.conf -javaagent @file" {
		t.Errorf("without effect: %s", got)
	}
}
