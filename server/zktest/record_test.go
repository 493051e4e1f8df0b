package zktest_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server/zktest"
)

// Recordings of two clients together, and of one alone.
func TestRecording(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		zs := zktest.Run(t)
		early := rawConnect(t, zs) // connects before the recording starts
		all := zs.Record(zktest.Match{})
		c := rawConnect(t, zs)
		only := zs.Record(zktest.Match{Session: early.session})
		creates := zs.Record(zktest.Match{Op: proto.OpCreate, Path: "/a*"})
		if code, _ := early.call(proto.OpExists, &proto.ExistsRequest{Path: "/a", Watch: true}); code != proto.ErrNoNode {
			t.Error(code)
		}
		c.create("/a", proto.ModeEphemeral)
		if _, err := early.frame(); err != nil { // the event
			t.Fatal(err)
		}
		c.must(proto.OpSetData, &proto.SetDataRequest{Path: "/a", Data: []byte("v1"), Version: 0})
		early.must(proto.OpGetData, &proto.GetDataRequest{Path: "/a"})
		zs.FailNext(zktest.Match{Op: proto.OpDelete}, proto.ErrNoAuth)
		if code, _ := c.call(proto.OpDelete, &proto.DeleteRequest{Path: "/a", Version: 3}); code != proto.ErrNoAuth {
			t.Error(code)
		}
		all.Stop()
		c.create("/unheard", proto.ModePersistent)
		const want = `2 < connect: timeout 30000 ms
1 > 1 exists /a watch
1 < 1 exists /a: zxid 0x2, NoNode
2 > 1 create /a "" ephemeral
1 < event NodeCreated /a
2 < 1 create /a: zxid 0x3
2 > 2 setData /a "v1" version 0
2 < 2 setData /a: zxid 0x4
1 > 2 getData /a
1 < 2 getData /a: zxid 0x4, "v1"
2 > 3 delete /a version 3
2 < 3 delete /a: zxid 0x4, NoAuth
`
		if got := named(all.String(), early, c); !sameLines(got, want) {
			t.Errorf("all:\n%s", got)
		}
		if got := named(only.String(), early, c); strings.Contains(got, "2 <") || strings.Contains(got, "2 >") || len(only.Lines()) != 5 {
			t.Errorf("only the first:\n%s", got)
		}
		if got := creates.Lines(); len(got) != 2 {
			t.Errorf("creates below /a: %q", got)
		}
	})
}

// named replaces the sessions with short names.
func named(text string, clients ...*raw) string {
	for i, c := range clients {
		text = strings.ReplaceAll(text, fmt.Sprintf("0x%x ", uint64(c.session)), fmt.Sprint(i+1, " "))
	}
	return text
}

// sameLines compares two texts regardless of the order between the clients, because the
// event of one and the reply to the other come from different goroutines.
func sameLines(got, want string) bool {
	for _, client := range []string{"1 ", "2 "} {
		of := func(text string) (list string) {
			for line := range strings.Lines(text) {
				if strings.HasPrefix(line, client) {
					list += line
				}
			}
			return list
		}
		if of(got) != of(want) {
			return false
		}
	}
	return len(got) == len(want)
}

// The conversation should be in the log of a failed test if requested.
func TestConversationOnFailure(t *testing.T) {
	t.Parallel()
	for _, failed := range []bool{false, true} {
		r := &recordingTB{TB: t}
		zs := zktest.Run(r, zktest.WithConversation())
		rawConnect(t, zs).create("/a", proto.ModePersistent)
		r.failed = failed
		if log := r.end(); strings.Contains(log, "the conversation") != failed {
			t.Errorf("failed %v: %q", failed, log)
		}
	}
}
