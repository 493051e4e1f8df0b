package history_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/history"
	"github.com/zkgo/zkgo/tests/kit/must"
)

// sample records one record of each kind.
func sample(r *history.Recorder) {
	st := history.StatOf(&proto.Stat{Czxid: 1, Mzxid: 2, Pzxid: 3, Version: 4, Cversion: 5, EphemeralOwner: 1<<62 + 1, NumChildren: 6})
	r.Op(&history.Op{Client: 1, Conn: 2, Session: 1<<62 + 1, Server: 3, Sent: 1, Seq: 2, Call: 5, Return: 9, Op: proto.OpMulti, Zxid: 1<<40 + 7,
		Parts: []history.Part{{Op: proto.OpSetData, Path: "/a", Value: "x", Version: -1, Stat: st}}})
	r.Op(&history.Op{Client: 1, Op: proto.OpSetWatches2, Watches: &history.Watches{Relative: 4, Data: []string{"/a"}, Recursive: []string{"/"}}})
	r.Event(&history.Event{Conn: 2, Seq: 3, At: 11, Type: proto.EventNodeCreated, Path: "/b", Zxid: -1})
	r.Session(&history.Session{Change: history.Expired, At: 12, Why: "told"})
	r.Hold(&history.Hold{Lock: "/l", Node: "/l/1", From: 1, To: 3, Why: "release"})
	r.State(&history.State{Server: 2, Zxid: 7, Digest: "d", Final: true, Nodes: []history.Node{{Path: "/a", Data: "x", Stat: *st}}, Live: []int64{1<<62 + 1}})
	r.Note("the leader %d is killed", 2)
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	var file bytes.Buffer
	r := history.NewRecorder(&file)
	sample(r)
	must.Do(t, r.Flush())
	want := r.History()
	text := file.String()
	got, err := history.Read(strings.NewReader(text))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%v: got\n%+v, want\n%+v", err, got, want)
	}
	var again bytes.Buffer
	if err := got.Write(&again); err != nil || again.String() != text {
		t.Errorf("%v: written again:\n%s", err, again.String())
	}
}

func TestReadOfDamagedFiles(t *testing.T) {
	t.Parallel()
	var file bytes.Buffer
	r := history.NewRecorder(&file)
	sample(r)
	must.Do(t, r.Flush())
	cut, err := history.Read(bytes.NewReader(file.Bytes()[:file.Len()-10]))
	if err != nil || len(cut.Notes) != 0 || len(cut.Ops) != 2 {
		t.Errorf("a last line cut off: %v, %+v", err, cut)
	}
	for _, bad := range []string{"{\"op\":7}\n", "{}\n", "what\n"} {
		if _, err := history.Read(strings.NewReader(bad)); err == nil || !strings.Contains(err.Error(), "record 1") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestDone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		op             history.Op
		answered, done bool
	}{
		{history.Op{}, false, false},
		{history.Op{Seq: 1}, true, true},
		{history.Op{Seq: 1, Code: proto.ErrNoNode}, true, false},
		{history.Op{Seq: 1, Parts: []history.Part{{}, {Code: proto.ErrBadVersion}}}, true, false},
		{history.Op{Seq: 1, Parts: []history.Part{{}, {}}}, true, true},
	} {
		if c.op.Answered() != c.answered || c.op.Done() != c.done {
			t.Errorf("%s: answered %v, done %v", c.op.String(), c.op.Answered(), c.op.Done())
		}
	}
}
