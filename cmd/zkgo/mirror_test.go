package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/internal/takeover"
)

// TestArrivalBar: the bar of a snapshot says that its size is an estimate, and isn't full before
// the snapshot to the log, even if the estimate was too low.
func TestArrivalBar(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	show := arrivalBar(&out, 0)
	for _, step := range []struct {
		arrival *takeover.Arrival
		has     []string
		hasNot  string
	}{
		{&takeover.Arrival{Bytes: 1 << 20, Znodes: 100}, []string{"unknown", "100"}, "%"},
		{&takeover.Arrival{Bytes: 2 << 20, Znodes: 250, Expected: 1000}, []string{"estimated", "25%", "250/1000"}, "unknown"},
		{&takeover.Arrival{Bytes: 3 << 20, Znodes: 1200, Expected: 1000}, []string{"estimated", "1200/1201", "99%"}, "100%"},
		{&takeover.Arrival{Bytes: 4 << 20, Znodes: 1300, Expected: 1000, Complete: true}, []string{"to the log", "1300/1300", "100%", "\n"}, ""},
		{nil, nil, "\n"}, // the line has ended
		{&takeover.Arrival{Bytes: 1 << 20, Znodes: 7, Expected: 10}, []string{"7/10"}, "1300"},
		{nil, []string{"\n"}, ""}, // the connection has ended
	} {
		show(step.arrival)
		text := out.String()
		out.Reset()
		last := text[strings.LastIndexByte(strings.TrimRight(text, "\r\n"), '\r')+1:]
		for _, want := range step.has {
			if !strings.Contains(last, want) {
				t.Errorf("%+v: no %q in %q", step.arrival, want, last)
			}
		}
		if step.hasNot != "" && strings.Contains(last, step.hasNot) {
			t.Errorf("%+v: %q in %q", step.arrival, step.hasNot, last)
		}
	}
	if arrivalProgress(&out) != nil {
		t.Error("a bar on an output that is no terminal")
	}
}

// TestMirrorStatusText: the status has the progress of a snapshot on its way to the log, and marks
// estimates.
func TestMirrorStatusText(t *testing.T) {
	t.Parallel()
	for want, a := range map[string]*takeover.Arrival{
		"": nil,
		"snapshot   250 znodes, 3 MiB of about 1000 znodes (25 %, an estimate)\n": {Bytes: 3 << 20, Znodes: 250, Expected: 1000},
		"(99 %, an estimate)": {Bytes: 3 << 20, Znodes: 2500, Expected: 1000},
		"snapshot   1 znode, 0 MiB received; total unknown\n":   {Znodes: 1},
		"250 znodes, 3 MiB received, writing them to the log\n": {Bytes: 3 << 20, Znodes: 250, Expected: 1000, Complete: true},
	} {
		var out strings.Builder
		if err := (mirrorStatus{takeover.Status{Phase: "none", Snapshot: a}}).Text(&out); err != nil || !strings.Contains(out.String(), want) || (a == nil) != !strings.Contains(out.String(), "snapshot") {
			t.Errorf("%v\n%s", err, out.String())
		}
	}
}
