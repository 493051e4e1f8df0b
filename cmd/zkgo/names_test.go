package main

import (
	"slices"
	"strings"
	"testing"
)

func TestByName(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"zkgo server zoo.cfg":                "server zoo.cfg",
		"zkgo":                               "",
		"/bin/zkCli.sh -server a:2181 ls /":  "cli -server a:2181 ls /",
		"/zkgo zkCli.sh ls /":                "cli ls /",
		"/bin/zkServer.sh status":            "health /etc/zk/zoo.cfg",
		"/bin/zkServer.sh start-foreground":  "container",
		"/zkgo zkServer.sh start-foreground": "container",
		"/bin/zkServer.sh version":           "version",
		"/bin/zkServer.sh":                   "",
	} {
		words := strings.Fields(line)
		got := byName(words[0], words[1:], func(string) string { return "/etc/zk" })
		if !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s: %q", line, got)
		}
	}
	if got := byName("zkServer.sh", []string{"status"}, func(string) string { return "" }); got[1] != "/conf/zoo.cfg" {
		t.Errorf("without ZOO_CONF_DIR: %q", got)
	}
}
