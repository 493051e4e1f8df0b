package rpc

import (
	"bufio"
	"bytes"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/raft"
)

// wire encodes v like raft.NetworkTransport.
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

func decoderOf(b []byte) *Reader { return &Reader{r: bufio.NewReader(bytes.NewReader(b))} }

var twoServers = raft.Configuration{Servers: []raft.Server{{ID: "1", Address: "s1:1"}, {ID: "2.7", Address: "s2:1", Suffrage: raft.Nonvoter}}}

// requests are Raft's messages by their type.
func requests() map[byte]any {
	return map[byte]any{
		AppendEntries: &raft.AppendEntriesRequest{RPCHeader: headerOf("1"), Term: 300, Leader: []byte("1"), PrevLogEntry: 1 << 40, PrevLogTerm: 200,
			LeaderCommitIndex: 70_000, Entries: []*raft.Log{
				{Index: 1<<40 + 1, Term: 200, Data: bytes.Repeat([]byte("x"), 70_000), AppendedAt: time.Unix(1e9, 5).UTC()},
				{Index: 1<<40 + 2, Term: 300, Type: raft.LogNoop},
				{Index: 1<<40 + 3, Term: 300, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(twoServers)}}},
		RequestVote:     &raft.RequestVoteRequest{RPCHeader: headerOf("1"), Term: 8, Candidate: []byte("1"), LastLogIndex: 5, LastLogTerm: 3, LeadershipTransfer: true},
		RequestPreVote:  &raft.RequestPreVoteRequest{RPCHeader: headerOf("1"), Term: 8, LastLogIndex: 5, LastLogTerm: 3},
		TimeoutNow:      &raft.TimeoutNowRequest{RPCHeader: headerOf("1")},
		InstallSnapshot: &raft.InstallSnapshotRequest{RPCHeader: headerOf("1"), SnapshotVersion: 1, Term: 9, Leader: []byte("1"), LastLogIndex: 50, LastLogTerm: 8, Configuration: raft.EncodeConfiguration(twoServers), ConfigurationIndex: 49, Size: 1 << 33},
	}
}

// TestDecodesRaftMessages: this decoder reads raft.NetworkTransport's messages.
func TestDecodesRaftMessages(t *testing.T) {
	t.Parallel()
	for kind, want := range requests() {
		got, err := decoderOf(wire(t, want)).Decode(kind, 1<<20)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%T became %+v, %v; want %+v", want, got, err, want)
		}
		if err := Check("1", got); err != nil {
			t.Errorf("%T is refused: %v", want, err)
		}
	}
}

// TestRaftDecodesAnswers: raft.NetworkTransport reads the output of this encoder.
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
		dec := codec.NewDecoder(bytes.NewReader(AppendAnswer(nil, want)), &codec.MsgpackHandle{})
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

// TestLengthsAreNotBelieved: an announced length doesn't allocate memory.
func TestLengthsAreNotBelieved(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind byte
		b    []byte
	}{
		"a term that is text":                     {RequestVote, wire(t, map[string]any{"Term": "9"})},
		"an id of 300 MB":                         {RequestVote, append(wire(t, map[string]any{"ID": 0})[:4], 0xc6, 0x12, 0, 0, 0)},
		"an entry of 4 GB":                        {AppendEntries, []byte("\x81\xa7Entries\x91\x81\xa4Data\xc6\xff\xff\xff\xff")},
		"an entry beyond the limit":               {AppendEntries, []byte("\x81\xa7Entries\x91\x81\xa4Data\xc6\x00\x20\x00\x00")},
		"four billion entries":                    {AppendEntries, []byte("\x81\xa7Entries\xdd\xff\xff\xff\xff")},
		"a nil entry":                             {AppendEntries, []byte("\x81\xa7Entries\x91\xc0")},
		"an entry with an extension of 255 bytes": {AppendEntries, []byte("\x81\xa7Entries\x91\x81\xaaExtensions\xc4\xffx")},
		"many fields":                             {TimeoutNow, []byte("\xdf\xff\xff\xff\xff")},
		"a long unknown field":                    {TimeoutNow, []byte("\x81\xa1x\xc6\xff\xff\xff\xff")},
		"a deep unknown field":                    {TimeoutNow, append([]byte("\x81\xa1x"), bytes.Repeat([]byte{0x91}, 1000)...)},
		"a wide unknown field":                    {TimeoutNow, []byte("\x81\xa1x\xdd\xff\xff\xff\xff")},
		"a negative term":                         {RequestVote, []byte("\x81\xa4Term\xff")},
		"no record":                               {TimeoutNow, []byte("\x05")},
		"a byte that is in no msgpack":            {TimeoutNow, []byte("\x81\xa1x\xc1")},
		"an unknown type":                         {9, []byte("\x80")},
		"its end too early":                       {TimeoutNow, []byte("\x82\xa2ID\xa11")},
	} {
		d, reserved := decoderOf(c.b), 0
		d.reserve = func(n int) error { reserved += n; return nil }
		if got, err := d.Decode(c.kind, 1<<20); err == nil {
			t.Errorf("%s: taken for %+v", name, got)
		}
		if reserved > 1000 {
			t.Errorf("%s: %d bytes reserved", name, reserved)
		}
	}
}

// TestLongFields: the memory of a long field grows as its bytes arrive, and each step is
// reserved.
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

func FuzzRPC(f *testing.F) {
	for kind, v := range requests() {
		f.Add(kind, wire(f, v))
	}
	f.Add(AppendEntries, []byte("\x81\xa7Entries\x91\xc0"))
	f.Fuzz(func(t *testing.T, kind byte, b []byte) {
		const limit = 1 << 16
		d := decoderOf(b)
		reserved := 0
		d.reserve = func(n int) error { reserved += n; return nil }
		got, err := d.Decode(kind, limit)
		if reserved > 2*fieldStep+4*len(b) {
			t.Fatalf("%d bytes reserved for a message of %d", reserved, len(b))
		}
		if err != nil {
			return
		}
		// The decoded message, encoded by Raft's own encoder, decodes to the same
		// message.
		again, err := decoderOf(wire(t, got)).Decode(kind, limit)
		if err != nil || !reflect.DeepEqual(got, again) {
			t.Fatalf("%+v became %+v, %v", got, again, err)
		}
		if err := Check("1", got); err != nil {
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

// FuzzConfiguration: if checkConfiguration accepts a configuration, Raft decodes it to
// the same one.
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

// headerOf returns the header of Raft's messages from a server.
func headerOf(id string) raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(id), Addr: []byte(id)}
}
