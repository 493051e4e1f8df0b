package raftfsm

import (
	"fmt"
	"testing"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/apply"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
)

// BenchmarkApply measures applying entries without a log, with few and with many commands
// per entry, for each kind of write. The reported time is per command.
func BenchmarkApply(b *testing.B) {
	set := proto.SetDataRequest{Path: "/node", Data: make([]byte, 100), Version: -1}
	multi := proto.MultiRequest{}
	for range 10 {
		multi.Ops = append(multi.Ops, proto.MultiOp{Op: proto.OpSetData, Req: &set})
	}
	for _, kind := range []struct {
		name string
		op   proto.Op
		body proto.Record
	}{
		{"set", proto.OpSetData, &set},
		{"multi", proto.OpMulti, &multi},
		{"create-delete", proto.OpCreate, &proto.CreateRequest{Path: "/node/child", Data: make([]byte, 100), ACL: proto.OpenACL()}},
	} {
		for _, size := range []int{2, 64, 1024} {
			b.Run(fmt.Sprintf("%s/%d", kind.name, size), func(b *testing.B) {
				benchmarkApply(b, size, command.Command{Kind: command.KindRequest, Op: kind.op, Body: kind.body.Append(nil)})
			})
		}
	}
}

func benchmarkApply(b *testing.B, size int, c command.Command) {
	r := newReplica(b)
	r.Handler = apply.Detached().Handler
	l := newLeader(1, command.FlagStandalone)
	r.mustFeed(b, l.begin())
	r.mustFeed(b, l.batch(attachCommand()))
	first := firstSession()
	var commands []command.Command
	create := proto.CreateRequest{Path: "/node", ACL: proto.OpenACL()}
	r.mustFeed(b, l.batch(command.Command{Kind: command.KindRequest, Op: proto.OpCreate, Session: first.ID, Gen: first.Gen, Body: create.Append(nil)}))
	c.Session, c.Gen = first.ID, first.Gen
	for len(commands) < size {
		commands = append(commands, c)
		if c.Op == proto.OpCreate { // delete the created znode again
			del := proto.DeleteRequest{Path: "/node/child", Version: -1}
			commands = append(commands, command.Command{Kind: command.KindRequest, Op: proto.OpDelete, Session: c.Session, Gen: c.Gen, Body: del.Append(nil)})
		}
	}
	b.ReportAllocs()
	var entries [][]byte // stopping the timer costs more than an entry
	for done := 0; done < b.N; done += len(commands) {
		if len(entries) == 0 {
			b.StopTimer()
			for range min(128, 1+(b.N-done)/len(commands)) {
				entries = append(entries, l.batch(commands...))
			}
			b.StartTimer()
		}
		r.mustFeed(b, entries[0])
		entries = entries[1:]
	}
	if changed := r.Tree.LastZxid(); changed < int64(b.N) {
		b.Fatalf("%d commands changed %d times something", b.N, changed)
	}
}
