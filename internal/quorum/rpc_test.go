package quorum

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/raft"
)

// wire encodes v as raft.NetworkTransport does.
func wire(t testing.TB, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	var handle codec.MsgpackHandle
	handle.TimeNotBuiltin = true
	if err := codec.NewEncoder(&b, &handle).Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func decoderOf(b []byte) *reader { return &reader{r: bufio.NewReader(bytes.NewReader(b))} }

var twoServers = raft.Configuration{Servers: []raft.Server{{ID: "1", Address: "s1:1"}, {ID: "2.7", Address: "s2:1", Suffrage: raft.Nonvoter}}}

// requests are Raft's messages by their type.
func requests() map[byte]any {
	return map[byte]any{
		rpcAppendEntries: &raft.AppendEntriesRequest{RPCHeader: headerOf("1"), Term: 300, Leader: []byte("1"), PrevLogEntry: 1 << 40, PrevLogTerm: 200,
			LeaderCommitIndex: 70_000, Entries: []*raft.Log{
				{Index: 1<<40 + 1, Term: 200, Data: bytes.Repeat([]byte("x"), 70_000), AppendedAt: time.Unix(1e9, 5).UTC()},
				{Index: 1<<40 + 2, Term: 300, Type: raft.LogNoop},
				{Index: 1<<40 + 3, Term: 300, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(twoServers)}}},
		rpcRequestVote:     &raft.RequestVoteRequest{RPCHeader: headerOf("1"), Term: 8, Candidate: []byte("1"), LastLogIndex: 5, LastLogTerm: 3, LeadershipTransfer: true},
		rpcRequestPreVote:  &raft.RequestPreVoteRequest{RPCHeader: headerOf("1"), Term: 8, LastLogIndex: 5, LastLogTerm: 3},
		rpcTimeoutNow:      &raft.TimeoutNowRequest{RPCHeader: headerOf("1")},
		rpcInstallSnapshot: &raft.InstallSnapshotRequest{RPCHeader: headerOf("1"), SnapshotVersion: 1, Term: 9, Leader: []byte("1"), LastLogIndex: 50, LastLogTerm: 8, Configuration: raft.EncodeConfiguration(twoServers), ConfigurationIndex: 49, Size: 1 << 33},
	}
}

// TestDecodesWhatRaftEncodes: this decoder reads raft.NetworkTransport's messages.
func TestDecodesWhatRaftEncodes(t *testing.T) {
	t.Parallel()
	for kind, want := range requests() {
		got, err := decodeRPC(decoderOf(wire(t, want)), kind, 1<<20)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%T became %+v, %v; want %+v", want, got, err, want)
		}
		if err := (&Transport{}).examine("1", got); err != nil {
			t.Errorf("%T is refused: %v", want, err)
		}
	}
}

// TestRaftDecodesAnswers: raft.NetworkTransport reads what this encoder writes.
func TestRaftDecodesAnswers(t *testing.T) {
	t.Parallel()
	for _, want := range []raft.RPCResponse{
		{Response: &raft.AppendEntriesResponse{RPCHeader: headerOf("2"), Term: 1 << 50, LastLog: 127, Success: true, NoRetryBackoff: true}},
		{Response: &raft.RequestVoteResponse{RPCHeader: headerOf("2"), Term: 128, Granted: true}},
		{Response: &raft.RequestPreVoteResponse{RPCHeader: headerOf("2"), Term: 128, Granted: true}},
		{Response: &raft.InstallSnapshotResponse{RPCHeader: headerOf("2"), Term: 9, Success: true}},
		{Response: &raft.TimeoutNowResponse{RPCHeader: headerOf("2")}},
		{Response: nil, Error: errors.New("a longer reason why the message was refused, of more than 31 bytes")},
	} {
		dec := codec.NewDecoder(bytes.NewReader(appendAnswer(nil, want)), &codec.MsgpackHandle{})
		var text string
		if err := dec.Decode(&text); err != nil {
			t.Fatal(err)
		}
		if want.Error != nil && text != want.Error.Error() || want.Error == nil && text != "" {
			t.Errorf("the error became %q, want %v", text, want.Error)
		}
		if want.Response == nil {
			continue
		}
		got := reflect.New(reflect.TypeOf(want.Response).Elem())
		if err := dec.Decode(got.Interface()); err != nil || !reflect.DeepEqual(got.Interface(), want.Response) {
			t.Errorf("%+v became %+v, %v", want.Response, got.Interface(), err)
		}
	}
}

// TestLengthsAreNotBelieved: we should not allocate memory just because a length is
// announced.
func TestLengthsAreNotBelieved(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind byte
		b    []byte
	}{
		"a term that is text":                     {rpcRequestVote, wire(t, map[string]any{"Term": "9"})},
		"an id of 300 MB":                         {rpcRequestVote, append(wire(t, map[string]any{"ID": 0})[:4], 0xc6, 0x12, 0, 0, 0)},
		"an entry of 4 GB":                        {rpcAppendEntries, []byte("\x81\xa7Entries\x91\x81\xa4Data\xc6\xff\xff\xff\xff")},
		"an entry beyond the limit":               {rpcAppendEntries, []byte("\x81\xa7Entries\x91\x81\xa4Data\xc6\x00\x20\x00\x00")},
		"four billion entries":                    {rpcAppendEntries, []byte("\x81\xa7Entries\xdd\xff\xff\xff\xff")},
		"a nil entry":                             {rpcAppendEntries, []byte("\x81\xa7Entries\x91\xc0")},
		"an entry with an extension of 255 bytes": {rpcAppendEntries, []byte("\x81\xa7Entries\x91\x81\xaaExtensions\xc4\xffx")},
		"many fields":                             {rpcTimeoutNow, []byte("\xdf\xff\xff\xff\xff")},
		"a long unknown field":                    {rpcTimeoutNow, []byte("\x81\xa1x\xc6\xff\xff\xff\xff")},
		"a deep unknown field":                    {rpcTimeoutNow, append([]byte("\x81\xa1x"), bytes.Repeat([]byte{0x91}, 1000)...)},
		"a wide unknown field":                    {rpcTimeoutNow, []byte("\x81\xa1x\xdd\xff\xff\xff\xff")},
		"a negative term":                         {rpcRequestVote, []byte("\x81\xa4Term\xff")},
		"no record":                               {rpcTimeoutNow, []byte("\x05")},
		"a byte that is in no msgpack":            {rpcTimeoutNow, []byte("\x81\xa1x\xc1")},
		"an unknown type":                         {9, []byte("\x80")},
		"its end too early":                       {rpcTimeoutNow, []byte("\x82\xa2ID\xa11")},
	} {
		d, reserved := decoderOf(c.b), 0
		d.reserve = func(n int) error { reserved += n; return nil }
		if got, err := decodeRPC(d, c.kind, 1<<20); err == nil {
			t.Errorf("%s: taken for %+v", name, got)
		}
		if reserved > 1000 {
			t.Errorf("%s: %d bytes reserved", name, reserved)
		}
	}
}

// TestLongFields: the memory of a long field should grow as its bytes arrive, and we should
// reserve each step.
func TestLongFields(t *testing.T) {
	t.Parallel()
	want := bytes.Repeat([]byte("0123456789"), 500_000)
	d := decoderOf(wire(t, want))
	reserved := 0
	d.reserve = func(n int) error { reserved += n; return nil }
	if got := d.bytes(len(want)); d.err != nil || !bytes.Equal(got, want) || reserved != len(want) {
		t.Errorf("%d bytes of %d, %d reserved, %v", len(got), len(want), reserved, d.err)
	}
	cut := decoderOf([]byte{0xc6, 0x10, 0, 0, 0, 'x'})
	reserved = 0
	cut.reserve = d.reserve
	if cut.bytes(1 << 30); cut.err == nil || reserved > fieldStep {
		t.Errorf("%d bytes reserved for one that came, %v", reserved, cut.err)
	}
}

// TestRoom: when memory runs out, we should close the stream with the largest message.
func TestRoom(t *testing.T) {
	t.Parallel()
	r := &budget{limit: 100}
	var small, large closeCounter
	a, b := &holding{of: r, conn: &small}, &holding{of: r, conn: &large}
	if err := errors.Join(a.reserve(20), b.reserve(60)); err != nil {
		t.Fatal(err)
	}
	if err := a.reserve(30); err != nil || large.n != 1 || small.n != 0 {
		t.Fatalf("%v; the large one closed %d times, the small one %d", err, large.n, small.n)
	}
	if err := b.reserve(1); err == nil {
		t.Error("the closed one goes on")
	}
	if err := a.reserve(60); err == nil {
		t.Error("more than there is was given")
	}
	a.release()
	if r.used != 0 || len(r.holds) != 0 {
		t.Errorf("%d bytes are held for %d messages after their end", r.used, len(r.holds))
	}
}

func FuzzRPC(f *testing.F) {
	for kind, v := range requests() {
		f.Add(kind, wire(f, v))
	}
	f.Add(rpcAppendEntries, []byte("\x81\xa7Entries\x91\xc0"))
	f.Fuzz(func(t *testing.T, kind byte, b []byte) {
		const limit = 1 << 16
		d := decoderOf(b)
		reserved := 0
		d.reserve = func(n int) error { reserved += n; return nil }
		got, err := decodeRPC(d, kind, limit)
		if reserved > 2*fieldStep+4*len(b) {
			t.Fatalf("%d bytes reserved for a message of %d", reserved, len(b))
		}
		if err != nil {
			return
		}
		// If Raft's own encoder encodes the decoded message, it should decode to the same
		// message.
		again, err := decodeRPC(decoderOf(wire(t, got)), kind, limit)
		if err != nil || !reflect.DeepEqual(got, again) {
			t.Fatalf("%+v became %+v, %v", got, again, err)
		}
		if err := (&Transport{}).examine("1", got); err != nil {
			return
		}
		if a, ok := got.(*raft.AppendEntriesRequest); ok {
			for i, l := range a.Entries {
				if l == nil || l.Index != a.PrevLogEntry+1+uint64(i) {
					t.Fatalf("entry %d is %+v after %d", i, l, a.PrevLogEntry)
				}
			}
		}
	})
}

// FuzzConfiguration: if checkConfiguration accepts a configuration, Raft should decode it
// to the same one.
func FuzzConfiguration(f *testing.F) {
	f.Add(raft.EncodeConfiguration(twoServers))
	f.Add(raft.EncodeConfiguration(raft.Configuration{}))
	f.Add([]byte("\x81\xa7Servers\x91\x83\xa8Suffrage\x00\xa2ID\xa11\xa7Address\xa1a"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if checkConfiguration(b) != nil {
			return
		}
		if got, want := decoderOf(b).configuration(), raft.DecodeConfiguration(b); !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v, Raft reads %+v", got, want)
		}
	})
}

// closeCounter is a connection that counts Close calls.
type closeCounter struct {
	net.Conn
	n int
}

func (c *closeCounter) Close() error { c.n++; return nil }

// TestTheNewestLeaderIsBelieved: the server should accept every message of the first server
// that leads a term, regardless of Raft's current view of the leader, and none of a second
// one.
func TestTheNewestLeaderIsBelieved(t *testing.T) {
	t.Parallel()
	now := Standing{Term: 3}
	tr := &Transport{id: "1", cfg: TransportConfig{Standing: func() Standing { return now }}}
	for _, step := range []struct {
		from raft.ServerID
		term uint64
		good bool
	}{
		{"5", 2, true}, {"4", 3, true}, {"5", 2, true}, {"4", 3, true}, {"5", 3, false}, {"4", 2, true}, {"2", 4, true}, {"4", 4, false}, {"2", 4, true},
	} {
		a := &raft.AppendEntriesRequest{RPCHeader: headerOf(string(step.from)), Term: step.term}
		if err := tr.examineEntries(step.from, a); (err == nil) != step.good {
			t.Errorf("server %s in term %d: %v", step.from, step.term, err)
		}
	}
	bad := &raft.AppendEntriesRequest{Term: 5, PrevLogEntry: 1}
	if tr.examineEntries("6", bad) == nil || tr.leaders.newest() != "2" {
		t.Error("a message that is refused makes its sender a leader")
	}
	now = Standing{Leads: true, Term: 5}
	if tr.examineLeader(5) == nil || tr.examineLeader(6) != nil {
		t.Error("a leader takes another one for the leader of its own term, or none of a later one")
	}
}

// TestAReplacedLeaderMayLackWhatIsCommitted: Raft should handle the messages of a replaced
// leader, and answer with the newer term. We should check messages of a leader of this
// term.
func TestAReplacedLeaderMayLackWhatIsCommitted(t *testing.T) {
	t.Parallel()
	tr := &Transport{id: "1", cfg: TransportConfig{
		Standing: func() Standing { return Standing{Term: 5, Committed: 10} },
		TermOf:   func(uint64) (uint64, bool) { return 5, true },
	}}
	for term, good := range map[uint64]bool{4: true, 5: false, 6: false} {
		a := &raft.AppendEntriesRequest{RPCHeader: headerOf("2"), Term: term, PrevLogEntry: 7, PrevLogTerm: 4,
			Entries: []*raft.Log{{Index: 8, Term: 4, Type: raft.LogNoop}}}
		if err := tr.examineCommitted(a); (err == nil) != good {
			t.Errorf("in term %d: %v", term, err)
		}
	}
}

// TestAStreamThatEndsIsNoOffence: if the sender of a snapshot stops in the middle or the
// connection is lost, that breaks no rule. A complete but wrong snapshot does, and so does
// a complete one that contains less than it announces.
func TestAStreamThatEndsIsNoOffence(t *testing.T) {
	t.Parallel()
	abc := func(r io.Reader) error {
		b, err := io.ReadAll(r)
		if err != nil || string(b) != "abc" {
			return fmt.Errorf("%q, %w", b, err)
		}
		return nil
	}
	for name, tt := range map[string]struct {
		sent    string
		size    int64
		offence bool
	}{
		"whole":              {"abc", 3, false},
		"more follows":       {"abcd", 3, false},
		"ends early":         {"ab", 3, false},
		"ends at once":       {"", 3, false},
		"wrong":              {"abx", 3, true},
		"shorter than it is": {"ab", 2, true},
	} {
		c := checkWhileReading(strings.NewReader(tt.sent), tt.size, abc)
		b, err := io.ReadAll(c)
		c.close()
		rule := (*ruleError)(nil)
		if offence := errors.As(c.err, &rule); offence != tt.offence {
			t.Errorf("%s: %v", name, c.err)
		}
		if whole := string(b) == "abc" && err == nil; whole != (tt.sent[:min(3, len(tt.sent))] == "abc") {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}
