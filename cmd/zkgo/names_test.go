package main

import (
	"slices"
	"strings"
	"testing"
)

func TestByName(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"zkgo server zoo.cfg":                                  "server zoo.cfg",
		"zkgo":                                                 "",
		"/bin/zkCli.sh -server a:2181 ls /":                    "cli -server a:2181 ls /",
		"/zkgo zkCli.sh ls /":                                  "cli ls /",
		"/bin/zkServer.sh status":                              "health /etc/zk/zoo.cfg",
		"/bin/zkServer.sh start-foreground":                    "container /etc/zk/zoo.cfg",
		"/zkgo zkServer.sh start-foreground":                   "container /etc/zk/zoo.cfg",
		"/zkgo zkServer.sh start-foreground other.cfg":         "container /etc/zk/other.cfg",
		"/zkgo zkServer.sh start-foreground /a/other.cfg":      "container /a/other.cfg",
		"/zkgo zkServer.sh start-foreground ./other.cfg":       "container ./other.cfg",
		"/zkgo zkServer.sh --config /b start-foreground":       "container /b/zoo.cfg",
		"/zkgo zkServer.sh --config /b start-foreground x.cfg": "container /b/x.cfg",
		"/zkgo zkServer.sh start-foreground --log-format json": "container /etc/zk/zoo.cfg --log-format json",
		"/zkgo zkServer.sh start-foreground x.cfg --set a=b":   "container /etc/zk/x.cfg --set a=b",
		"/bin/zkServer.sh --config /b status /a/zoo.cfg":       "health /a/zoo.cfg",
		"/bin/zkServer.sh status x.cfg":                        "health /etc/zk/x.cfg",
		"/bin/zkServer.sh status x.cfg y.cfg":                  "health /etc/zk/x.cfg y.cfg",
		"/bin/zkServer.sh version":                             "version",
		"/bin/zkServer.sh --config /b version /b/zoo.cfg":      "version",
		"/zkgo --config /b status":                             "--config /b status",
	} {
		words := strings.Fields(line)
		got, err := byName(words[0], words[1:], environ("ZOO_CONF_DIR=/etc/zk"))
		if err != nil || !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s: %q, %v", line, got, err)
		}
	}
	for variables, want := range map[string]string{
		"": "/conf/zoo.cfg", "ZOOCFGDIR=/a ZOO_CONF_DIR=/b": "/a/zoo.cfg", "ZOO_CONF_DIR=/b ZOOCFG=x.cfg": "/b/x.cfg",
	} {
		if got, err := byName("zkServer.sh", []string{"status"}, environ(strings.Fields(variables)...)); err != nil || got[1] != want {
			t.Errorf("%s: %q, %v", variables, got, err)
		}
	}
}

// environ returns a function that looks up variables of the form NAME=value.
func environ(variables ...string) func(string) string {
	return func(name string) string {
		for _, v := range variables {
			if value, ok := strings.CutPrefix(v, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

// TestZkServerUsage: an unknown command is an error in the command line, as in deploy/bin.
func TestZkServerUsage(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"": "Usage: zkServer.sh [--config <conf-dir>] {start-foreground|status|version} [zoo.cfg]", "start": "zkServer.sh start: not supported",
		"foo": "zkServer.sh foo: not supported", "--config": "zkServer.sh --config: not supported", "--config /b": "Usage: ",
	} {
		_, err := byName("zkServer.sh", strings.Fields(line), environ())
		if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "Usage: zkServer.sh ") {
			t.Errorf("%q: %v", line, err)
			continue
		}
		if code, tell := codeOf(err); code != codeUsage || !tell {
			t.Errorf("%q: exit code %d, %v", line, code, tell)
		}
	}
}
