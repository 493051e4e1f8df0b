package session

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/internal/transcript"
	"github.com/zkgo/zkgo/proto"
)

var rewrite = flag.Bool("rewrite", false, "write the output of the commands into testdata/transcript.txt")

// ensemble is a table and its leader's deadlines. The transcript names a session by its
// counter.
type ensemble struct {
	table     *Table
	deadlines *Deadlines
	now       time.Duration
	unsure    bool // another server may lead
}

// id returns the id of the session with that counter.
func (e *ensemble) id(counter string) int64 {
	for s := range e.table.All {
		if fmt.Sprint(Counter(s.ID)) == counter {
			return s.ID
		}
	}
	return 0
}

func (e *ensemble) attached(s Session) string {
	e.deadlines.Attached(Deadline{s.ID, s.Gen, time.Duration(s.Timeout) * time.Millisecond}, clocks(e.now))
	return fmt.Sprintf("%#x generation %d at server %d", uint64(s.ID), s.Gen, s.Server)
}

// pass lets time go by, in which the leader checks the deadlines.
func (e *ensemble) pass(d time.Duration) string {
	var out []string
	for end := e.now + d; e.now < end; {
		e.now += e.deadlines.Interval()
		for _, s := range e.deadlines.Expired(clocks(e.now), func() bool { return !e.unsure }) {
			if e.table.Check(s.Session, s.Gen) == proto.Ok {
				e.table.Remove(s.Session)
			}
			out = append(out, fmt.Sprintf("%v: %d expires", e.now, Counter(s.Session)))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// TestTranscript runs, with a tick of one second,
//
//	create SERVER SECONDS             create a session with that timeout
//	attach SESSION SERVER SECONDS     attach it again, password as it was
//	steal SESSION                     attach it with a wrong password
//	check SESSION GENERATION          may a command of that generation act?
//	close SESSION                     the client closes it
//	heard SESSION                     a server heard from the client
//	pass SECONDS                      time goes by
//	stop SECONDS                      the leader's process is stopped for that long
//	lead                              another server starts to lead
//	unsure, sure                      whether another server may lead
//	list                              the table
func TestTranscript(t *testing.T) {
	t.Parallel()
	e := &ensemble{table: NewTable(), deadlines: NewDeadlines(time.Second)}
	err := transcript.Run("testdata/transcript.txt", *rewrite, func(command string, args []string) string {
		number := func(i int) int { n, _ := strconv.Atoi(args[i]); return n }
		switch command {
		case "create":
			return e.attached(e.table.Create(uint8(number(0)), int32(number(1)*1000), password(1)))
		case "attach", "steal":
			p := password(1)
			if command == "steal" {
				p = password(2)
				args = append(args, "9", "1")
			}
			s, ok := e.table.Attach(e.id(args[0]), p[:], int32(number(2)*1000), uint8(number(1)))
			if !ok {
				return "no"
			}
			return e.attached(s)
		case "check":
			return e.table.Check(e.id(args[0]), uint64(number(1))).String()
		case "close":
			id := e.id(args[0])
			e.deadlines.Ended(id)
			return fmt.Sprint(e.table.Remove(id))
		case "heard":
			e.deadlines.Heard(e.id(args[0]), at(e.now))
		case "pass":
			return e.pass(time.Duration(number(0)) * time.Second)
		case "stop":
			e.now += time.Duration(number(0)) * time.Second
		case "lead":
			e.deadlines.Reset()
			for s := range e.table.All {
				e.attached(s)
			}
		case "unsure", "sure":
			e.unsure = command == "unsure"
		case "list":
			var b strings.Builder
			for s := range e.table.All {
				fmt.Fprintf(&b, "%d timeout %d s, generation %d at server %d\n", Counter(s.ID), s.Timeout/1000, s.Gen, s.Server)
			}
			return b.String()
		default:
			return "unknown command"
		}
		return ""
	})
	if err != nil {
		t.Error(err)
	}
}
