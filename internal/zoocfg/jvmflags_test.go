package zoocfg

import (
	"reflect"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
)

func TestJVMFlags(t *testing.T) {
	t.Parallel()
	const from = "JVMFLAGS"
	properties, unused := jvmFlags(from, "-Xms1g -XX:+UseG1GC -server -Dcom.sun.management.jmxremote.port=1 -Djava.rmi.server.hostname=h "+
		"-Dzookeeper.4lw.commands.whitelist=* -Dzookeeper.sasl.serverconfig=a=b\n-Djute.maxbuffer=0x100000\t-Djute.maxbuffers=1 "+
		"-Dznode.container.maxPerMinute=5 -Djava.security.auth.login.config=/jaas.conf -Dreadonlymode.enabled -DsuperUser=x "+
		"-Djava.security.krb5.conf=/k -javaagent:jmx.jar=7070:a.yaml @file")
	want := []systemProperty{
		{"4lw.commands.whitelist", "*", true, from}, {"sasl.serverconfig", "a=b", true, from}, {"jute.maxbuffer", "0x100000", false, from},
		{"znode.container.maxPerMinute", "5", false, from}, {"java.security.auth.login.config", "/jaas.conf", false, from}, {"readonlymode.enabled", "", false, from},
	}
	if !reflect.DeepEqual(properties, want) {
		t.Errorf("properties %v", properties)
	}
	if got := strings.Join(unused, " "); got != "jute.maxbuffers superUser java.security.krb5.conf -javaagent @file" {
		t.Errorf("without effect: %s", got)
	}
}

// TestJVMFlagsAndTheFile: a line overrides a property zookeeper.KEY in every spelling that
// Java's properties have, the last flag wins, and a set key overrides all.
func TestJVMFlagsAndTheFile(t *testing.T) {
	t.Parallel()
	const text = "dataDir=/x\nclientPort=1\nsnap\\\n  Count : 7\nssl.clientAuth want\n! maxCnxns=1\njute.maxbuffer=5000\n"
	c := must.Get(ParseText("zoo.cfg", text,
		WithSet("globalOutstandingLimit", "5"),
		WithJVMFlags("SERVER_JVMFLAGS", "-Dzookeeper.snapCount=8 -Dzookeeper.ssl.clientAuth=perhaps -Dzookeeper.maxCnxns=x -Djute.maxbuffer=6000 -Dsecret=word"),
		WithJVMFlags("JVMFLAGS", "-Dzookeeper.maxCnxns=3 -Dzookeeper.globalOutstandingLimit=9 -Dzookeeper.snapCount=7")))(t)
	if c.SnapCount != 7 || c.TLS.ClientAuth != "want" || c.MaxCnxns != 3 || c.JuteMaxBuffer != 6000 || c.GlobalOutstanding != 5 {
		t.Errorf("the settings are %+v", c.Settings())
	}
	var got []string
	for _, w := range c.Warnings {
		got = append(got, w.String())
	}
	want := []string{
		"SERVER_JVMFLAGS: JVM flags without effect here: secret",
		"SERVER_JVMFLAGS: ssl.clientAuth: -Dzookeeper.ssl.clientAuth has no effect: zoo.cfg sets the key",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the warnings are\n%s", strings.Join(got, "\n"))
	}
	for _, s := range c.Settings() {
		if s.Key == "maxCnxns" && s.Origin != "JVMFLAGS" {
			t.Errorf("maxCnxns comes from %s", s.Origin)
		}
	}
}

// TestJVMFlagsWithoutFile: the same without a file, and errors name the variable.
func TestJVMFlagsWithoutFile(t *testing.T) {
	t.Parallel()
	c, err := NoFile(WithJVMFlags("JVMFLAGS", "-Dzookeeper.snapCount=8"), WithSet("clientPort", "5"))
	if err != nil || c.SnapCount != 8 || c.ClientPort != 5 || c.DataDir != Default().DataDir {
		t.Errorf("%v: %+v", err, c)
	}
	_, err = NoFile(WithJVMFlags("JVMFLAGS", "-Dzookeeper.ssl.clientAuth=perhaps"))
	if err == nil || !strings.HasPrefix(err.Error(), "JVMFLAGS: ssl.clientAuth: ") {
		t.Error(err)
	}
}
