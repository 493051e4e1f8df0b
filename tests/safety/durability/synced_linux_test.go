package durability

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/kit/servers"
)

// TestLoneWriteIsSynced uses strace to see what servers do between the arrival of a lone
// write and its reply: a majority should make something durable in that time, for every kind of
// write and each log store.
func TestLoneWriteIsSynced(t *testing.T) {
	process.Needed(t)
	if _, err := exec.LookPath("strace"); err != nil {
		t.Fatal("strace is needed to see what servers do: ", err)
	}
	for _, store := range []string{"wal", "bolt"} {
		for _, n := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s/%d", store, n), func(t *testing.T) {
				e := must.Get(servers.Start(servers.Zkgo(process.Binary(t)), t.TempDir(), n, "logStore="+store))(t)
				defer e.Kill()
				var tracers []*tracer
				for _, s := range e.Servers {
					tracers = append(tracers, trace(t, s.PID()))
				}
				var writes []span
				for _, s := range e.Servers {
					writes = append(writes, loneWrites(t, s)...)
				}
				var all [][]span
				for _, tr := range tracers {
					all = append(all, tr.end(t))
				}
				for i, w := range writes {
					synced := 0
					for _, calls := range all {
						if w.holdsOneOf(calls) {
							synced++
						}
					}
					if synced <= n/2 {
						t.Errorf("write %d (%s): %d of %d servers synced anything between its sending and its reply", i, w.what, synced, n)
					}
				}
				t.Logf("%d writes, each synced by more than half of %d servers before its reply", len(writes), n)
			})
		}
	}
}

// span is something with a beginning and an end, by the wall clock that all
// processes share.
type span struct {
	what       string
	begin, end time.Time
}

// holdsOneOf reports whether one of the calls, which are in order, lies within
// the span.
func (s span) holdsOneOf(calls []span) bool {
	for _, c := range calls {
		if !c.begin.Before(s.begin) && !c.end.After(s.end) {
			return true
		}
	}
	return false
}

// loneWrites makes writes of every kind through a server, one at a time, with
// nothing else in progress, and returns when each was in flight.
func loneWrites(t *testing.T, s *servers.Server) (all []span) {
	t.Helper()
	c := must.Get(process.Connect(s.Addr, 0, nil, 30*time.Second))(t)
	defer c.Close()
	path := fmt.Sprintf("/through-%d", s.ID)
	acl := proto.OpenACL()
	for _, w := range []struct {
		op  proto.Op
		rec proto.Record
	}{
		{proto.OpCreate, &proto.CreateRequest{Path: path, ACL: acl}},
		{proto.OpSetData, &proto.SetDataRequest{Path: path, Data: []byte("x"), Version: -1}},
		{proto.OpCreate2, &proto.CreateRequest{Path: path + "/e-", ACL: acl, Flags: int32(proto.ModeEphemeralSequential)}},
		{proto.OpSetACL, &proto.SetACLRequest{Path: path, ACL: acl, Version: -1}},
		{proto.OpMulti, &proto.MultiRequest{Ops: []proto.MultiOp{{Op: proto.OpSetData, Req: &proto.SetDataRequest{Path: path, Version: -1}}}}},
		{proto.OpDelete, &proto.DeleteRequest{Path: path + "/e-0000000000", Version: -1}},
		{proto.OpDelete, &proto.DeleteRequest{Path: path, Version: -1}},
	} {
		<-time.After(50 * time.Millisecond) // let the effects of the previous write end
		began := time.Now()
		if _, err := c.Do(w.op, w.rec); err != nil {
			t.Fatalf("%v: %v", w.op, err)
		}
		all = append(all, span{fmt.Sprint(w.op), began, time.Now()})
	}
	return all
}

// tracer is strace on a process.
type tracer struct {
	cmd  *exec.Cmd
	file string
}

// trace starts strace on a process and returns when strace has attached to all
// its threads.
func trace(t *testing.T, pid int) *tracer {
	t.Helper()
	tr := &tracer{file: filepath.Join(t.TempDir(), "calls")}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	tr.cmd = exec.CommandContext(ctx, "strace", "-f", "-ttt", "-T", "-e", "trace=fsync,fdatasync,msync,sync_file_range,fallocate", "-o", tr.file, "-p", strconv.Itoa(pid))
	stderr := must.Get(tr.cmd.StderrPipe())(t)
	must.Do(t, tr.cmd.Start())
	line, err := bufio.NewReader(stderr).ReadString('\n') // "strace: Process N attached …"
	if err != nil || !bytes.Contains([]byte(line), []byte("attached")) {
		_ = tr.cmd.Wait()
		t.Fatalf("strace does not attach: %s %v", line, err)
	}
	return tr
}

// These match finished calls: on one line, or resumed after another thread's
// line.
var (
	whole   = regexp.MustCompile(`^(\d+) +(\d+\.\d+) (fsync|fdatasync)\(\d+\) += 0 <(\d+\.\d+)>$`)
	resumed = regexp.MustCompile(`^(\d+) +(\d+\.\d+) <\.\.\. (fsync|fdatasync) resumed>\) += 0 <(\d+\.\d+)>$`)
)

// end stops strace, and returns the syncs that the process has made.
func (tr *tracer) end(t *testing.T) (calls []span) {
	t.Helper()
	must.Do(t, tr.cmd.Process.Signal(os.Interrupt))
	_ = tr.cmd.Wait() // strace's exit code says that it was interrupted
	text := must.Get(os.ReadFile(tr.file))(t)
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		if m := whole.FindSubmatch(line); m != nil {
			began := at(t, m[2])
			calls = append(calls, span{string(m[3]), began, began.Add(seconds(t, m[4]))})
		} else if m := resumed.FindSubmatch(line); m != nil {
			ended := at(t, m[2])
			calls = append(calls, span{string(m[3]), ended.Add(-seconds(t, m[4])), ended})
		}
	}
	if len(calls) == 0 {
		t.Fatalf("strace saw no sync:\n%s", text)
	}
	return calls
}

func seconds(t *testing.T, text []byte) time.Duration {
	t.Helper()
	s := must.Get(strconv.ParseFloat(string(text), 64))(t)
	return time.Duration(s * 1e9)
}

func at(t *testing.T, text []byte) time.Time {
	t.Helper()
	return time.Unix(0, 0).Add(seconds(t, text).Truncate(time.Microsecond))
}
