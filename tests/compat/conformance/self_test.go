package conformance

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// canned is a server that replies from a table: for every connection, in the
// order of dialling, and every frame received on it, the payloads to send.
type canned [][][][]byte

func (c canned) serve(t *testing.T) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, answers := range c {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go answer(nc, answers)
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l.Addr().String()
}

func answer(nc net.Conn, answers [][][]byte) {
	defer nc.Close()
	in := bufio.NewReader(nc)
	times := map[uint64]time.Time{}
	for _, payloads := range answers {
		var head [4]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return
		}
		if _, err := io.CopyN(io.Discard, in, int64(binary.BigEndian.Uint32(head[:]))); err != nil {
			return
		}
		for _, p := range payloads {
			if _, err := nc.Write(framed(clocked(p, times))); err != nil {
				return
			}
		}
	}
}

// The table has placeholders for the times of transactions, because these must
// lie between request and reply: the clock is read when a placeholder is first
// sent.
const firstTime, secondTime = 0x7117e7117e711701, 0x7117e7117e711702

func clocked(payload []byte, times map[uint64]time.Time) []byte {
	out := slices.Clone(payload)
	for i := 0; i+8 <= len(out); i++ {
		id := binary.BigEndian.Uint64(out[i:])
		if id != firstTime && id != secondTime {
			continue
		}
		if times[id].IsZero() {
			times[id] = time.Now()
		}
		binary.BigEndian.PutUint64(out[i:], uint64(times[id].UnixMilli()))
	}
	return out
}

func aHandshake(session int64) []byte {
	var e encoder
	e.int(0)
	e.int(30000)
	e.long(session)
	e.blob([]byte("passwordpassword"))
	e.byte(0)
	return e.b
}

func aReply(xid int32, zxid int64, code int32, body ...byte) []byte {
	var e encoder
	e.int(xid)
	e.long(zxid)
	e.int(code)
	return append(e.b, body...)
}

func aPath(path string) []byte {
	var e encoder
	e.blob([]byte(path))
	return e.b
}

func aStat(czxid, mzxid, ctime, mtime int64) []byte {
	var e encoder
	e.long(czxid)
	e.long(mzxid)
	e.long(ctime)
	e.long(mtime)
	for range 3 {
		e.int(0)
	}
	e.long(0)
	e.int(0)
	e.int(0)
	e.long(czxid)
	return e.b
}

func anEvent(zxid int64, kind int32, path string) []byte {
	var e encoder
	e.int(kind)
	e.int(3)
	e.raw(aPath(path))
	return aReply(-1, zxid, 0, e.b...)
}

const selfScript = `
connect w
connect a
a create2 /x
a setData /x 1
a create /y
a delete /none
w drain
a getChildren /
a closeSession
`

// conversation returns a correct server's replies to selfScript: zxids from base,
// sessions from session.
func conversation(base, session int64) canned {
	var children encoder
	children.int(2)
	children.blob([]byte("x"))
	children.blob([]byte("y"))
	return canned{
		{{aHandshake(session)}, {aReply(-2, base, 0)}, {aReply(1, base+1, 0)}},
		{{aHandshake(session + 1)},
			{anEvent(base+4, 1, "/x"), anEvent(base+5, 3, "/x"), aReply(-2, base+7, 0)}},
		{{aHandshake(session + 2)},
			{aReply(1, base+4, 0, append(aPath("/x"), aStat(base+4, base+4, firstTime, firstTime)...)...)},
			{aReply(2, base+5, 0, aStat(base+4, base+5, firstTime, secondTime)...)},
			{aReply(3, base+6, 0, aPath("/y")...)},
			{aReply(4, base+7, -101)},
			{aReply(5, base+7, 0, children.b...)},
			{aReply(6, base+8, 0)}},
	}
}

func runCanned(t *testing.T, c canned) string {
	t.Helper()
	s := must.Get(ParseScript("self", selfScript))(t)
	// The script leaves w open; no table has its reply to the last drain.
	s.body = append(s.body, line{words: []string{"w", "drop"}})
	transcript, err := Run(s, c.serve(t))
	if err != nil {
		transcript += "FAILED " + err.Error()
	}
	return transcript
}

// TestNormalised checks that two correct servers with different zxids, session
// ids and clocks give the same transcript.
func TestNormalised(t *testing.T) {
	t.Parallel()
	want := runCanned(t, conversation(1, 0x100))
	if strings.Contains(want, "FAILED") || strings.Contains(want, "(") {
		t.Fatal(want)
	}
	got := runCanned(t, conversation(7<<32|100, 0x7700000000000001))
	if d := Compare(want, got); d != "" {
		t.Error(d)
	}
}

// TestEverythingElseShows checks that any error of a server makes the comparison
// fail.
func TestEverythingElseShows(t *testing.T) {
	t.Parallel()
	want := runCanned(t, conversation(1, 0x100))
	const w, a = 1, 2 // the connections; 0 is the probe
	wrong := map[string]func(c canned){
		"events swapped":       func(c canned) { e := c[w][1]; e[0], e[1] = e[1], e[0] },
		"event missing":        func(c canned) { c[w][1] = c[w][1][1:] },
		"event twice":          func(c canned) { c[w][1] = slices.Insert(c[w][1], 0, c[w][1][0]) },
		"event after the ping": func(c canned) { e := c[w][1]; e[1], e[2] = e[2], e[1] },
		"zxids of two events swapped": func(c canned) {
			c[w][1][0], c[w][1][1] = anEvent(6, 1, "/x"), anEvent(5, 3, "/x")
		},
		"zxids of two replies swapped": func(c canned) {
			c[a][2], c[a][3] = [][]byte{aReply(2, 7, 0, aStat(5, 7, firstTime, secondTime)...)}, [][]byte{aReply(3, 6, 0, aPath("/y")...)}
		},
		"failed write without a zxid": func(c canned) { c[a][4] = [][]byte{aReply(4, 7, -101)} },
		"zxids swapped in a Stat":     func(c canned) { c[a][2] = [][]byte{aReply(2, 6, 0, aStat(6, 5, firstTime, secondTime)...)} },
		"mtime of long ago": func(c canned) {
			c[a][2] = [][]byte{aReply(2, 6, 0, aStat(5, 6, firstTime, time.Now().Add(-time.Hour).UnixMilli())...)}
		},
		"ctime not that of the create": func(c canned) {
			c[a][2] = [][]byte{aReply(2, 6, 0, aStat(5, 6, time.Now().Add(time.Second).UnixMilli(), secondTime)...)}
		},
		"another error code":   func(c canned) { c[a][4] = [][]byte{aReply(4, 8, -102)} },
		"success for an error": func(c canned) { c[a][4] = [][]byte{aReply(4, 8, 0)} },
		"another xid":          func(c canned) { c[a][4] = [][]byte{aReply(5, 8, -101)} },
		"a byte too many":      func(c canned) { c[a][4] = [][]byte{aReply(4, 8, -101, 0)} },
		"a byte too few":       func(c canned) { c[a][3] = [][]byte{aReply(3, 7, 0, 0, 0, 0)} },
		"one session for two":  func(c canned) { c[a][0] = [][]byte{aHandshake(0x101)} },
		"another timeout":      func(c canned) { c[a][0][0][7]++ },
		"password too short": func(c canned) {
			h := c[a][0][0]
			h[19]-- // the low byte of its length
			c[a][0][0] = slices.Delete(h, 20, 21)
		},
		"no readOnly byte":      func(c canned) { c[a][0][0] = c[a][0][0][:36] },
		"connection ends early": func(c canned) { c[a] = c[a][:5] },
		"path differs":          func(c canned) { c[a][3] = [][]byte{aReply(3, 7, 0, aPath("/z")...)} },
	}
	for name, change := range wrong {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := conversation(1, 0x100)
			change(c)
			if Compare(want, runCanned(t, c)) == "" {
				t.Error("the comparison does not notice")
			}
		})
	}
}

// TestGoldenLines checks that a golden file in which two lines are swapped, or
// one is changed or lost, compares as different.
func TestGoldenLines(t *testing.T) {
	t.Parallel()
	want := runCanned(t, conversation(1, 0x100))
	lines := strings.Split(want, "\n")
	for i := range lines[:len(lines)-2] {
		swapped := slices.Clone(lines)
		swapped[i], swapped[i+1] = swapped[i+1], swapped[i]
		lost := slices.Delete(slices.Clone(lines), i, i+1)
		for _, other := range [][]string{swapped, lost} {
			if Compare(want, strings.Join(other, "\n")) == "" {
				t.Errorf("line %d: not noticed", i+1)
			}
		}
	}
}

// TestDifferences checks that a listed difference applies only to its script, and
// must apply.
func TestDifferences(t *testing.T) {
	t.Parallel()
	all := []Difference{{Script: "one", Reason: "r", Theirs: "b\n", Ours: "x\ny\n"}}
	if got, err := Apply(all, "one", "a\nb\nc\n"); err != nil || got != "a\nx\ny\nc\n" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := Apply(all, "two", "a\nb\nc\n"); err != nil || got != "a\nb\nc\n" {
		t.Errorf("another script: %q, %v", got, err)
	}
	for _, transcript := range []string{"a\nc\n", "b\nb\n", "bb\n", "ab\n"} {
		if _, err := Apply(all, "one", transcript); err == nil {
			t.Errorf("%q: no error", transcript)
		}
	}
}
