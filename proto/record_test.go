package proto

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
)

// golden returns the lines of the golden file: name, mode, encoding. A Java program
// wrote it with the record classes of ZooKeeper 3.9.5.
func golden(t testing.TB) map[[2]string][]byte {
	b, err := os.ReadFile("testdata/jute-3.9.5.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := make(map[[2]string][]byte)
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		body, err := hex.DecodeString(f[2])
		if err != nil {
			t.Fatal(err)
		}
		lines[[2]string{f[0], f[1]}] = body
	}
	return lines
}

// Our encoding equals Java's and the slow codec's. Decoding returns the original
// record, whether strings alias the frame or not.
func TestRecords(t *testing.T) {
	t.Parallel()
	lines := golden(t)
	if len(lines) != 3*len(schema()) {
		t.Errorf("%d goldens for %d records", len(lines), len(schema()))
	}
	for _, e := range schema() {
		for _, mode := range []string{"full", "null", "empty"} {
			want := e.fresh()
			(&filler{mode: mode}).fill(reflect.ValueOf(want).Elem())
			body := lines[[2]string{e.name, mode}]
			if got := want.Append(nil); !bytes.Equal(got, body) {
				t.Errorf("%s %s:\n got %x\njava %x", e.name, mode, got, body)
			}
			if got := encode(nil, reflect.ValueOf(want).Elem()); !bytes.Equal(got, body) {
				t.Errorf("%s %s: the slow codec writes %x", e.name, mode, got)
			}
			for _, r := range []Reader{NewReader(body), AliasReader(body)} {
				got := e.fresh()
				if got.Decode(&r); r.Err() != nil || r.Len() != 0 || !reflect.DeepEqual(got, want) {
					t.Errorf("%s %s: decoded to %+v, %v, %d left", e.name, mode, got, r.Err(), r.Len())
				}
			}
			if got := want.Append([]byte("before")); string(got) != "before"+string(body) {
				t.Errorf("%s %s does not append", e.name, mode)
			}
			testCuts(t, e, body)
		}
	}
}

// testCuts decodes every proper prefix of a record: all should fail, and none may panic.
// Only the connect records may lack their last byte.
func testCuts(t *testing.T, e entry, body []byte) {
	for n := range body {
		r := AliasReader(body[:n])
		e.fresh().Decode(&r)
		optional := strings.HasPrefix(e.name, "Connect") && n == len(body)-1
		if (r.Err() == nil) != optional {
			t.Errorf("%s: %d of %d bytes: %v", e.name, n, len(body), r.Err())
		}
		if r.Err() != nil && !errors.Is(r.Err(), ErrShort) {
			t.Errorf("%s: %d of %d bytes: %v", e.name, n, len(body), r.Err())
		}
	}
}

// A ZooKeeper 3.3 client sends no readOnly byte and gets none.
func TestConnectWithoutReadOnly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		r    Record
		size int
	}{
		{&ConnectRequest{Passwd: make([]byte, 16)}, 44},
		{&ConnectResponse{Passwd: make([]byte, 16)}, 36},
	} {
		b := c.r.Append(nil)
		again := reflect.New(reflect.TypeOf(c.r).Elem()).Interface().(Record)
		r := NewReader(b)
		if again.Decode(&r); len(b) != c.size || r.Err() != nil || !reflect.DeepEqual(again, c.r) {
			t.Errorf("%d bytes, %+v, %v", len(b), again, r.Err())
		}
		if with := append(b, 2); true {
			r := NewReader(with)
			again.Decode(&r)
			if !reflect.ValueOf(again).Elem().FieldByName("ReadOnly").Bool() {
				t.Errorf("%+v", again)
			}
		}
	}
}

// We should refuse wrong lengths and counts before we allocate memory.
func TestHostileLengths(t *testing.T) {
	length := func(n int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }
	for _, n := range []int32{-2, -1 << 31, 1, 5, 1 << 20, 1<<31 - 1} {
		for name, read := range map[string]func(*Reader){
			"buffer": func(r *Reader) { r.Buffer() }, "string": func(r *Reader) { _ = r.String() },
			"strings": func(r *Reader) { r.Strings() }, "acls": func(r *Reader) { r.ACLs() },
			"ids": func(r *Reader) { new(WhoAmIResponse).Decode(r) },
		} {
			frame := length(n)
			r := AliasReader(frame)
			read(&r)
			vector := name != "buffer" && name != "string"
			if (r.Err() == nil) != (vector && n < 0) {
				t.Errorf("%s of length %d: %v", name, n, r.Err())
			}
			if allocs := testing.AllocsPerRun(1, func() { r := AliasReader(frame); read(&r) }); n > 0 && allocs > 12 {
				t.Errorf("%s of length %d: %v allocations", name, n, allocs)
			}
		}
	}
	// Java reads a negative count as an empty vector, −1 as null.
	r := NewReader(length(-7))
	if v := r.Strings(); v == nil || len(v) != 0 || r.Err() != nil {
		t.Error(v, r.Err())
	}
	r = NewReader(length(-1))
	if v := r.Strings(); v != nil || r.Err() != nil {
		t.Error(v, r.Err())
	}
	frame := make([]byte, 1<<16)
	copy(frame, length(1<<14))
	r = NewReader(frame)
	if v := r.ACLs(); v != nil || !errors.Is(r.Err(), ErrShort) {
		t.Errorf("%d lists in too few bytes: %v", len(v), r.Err())
	}
}

// The first error is sticky.
func TestReader(t *testing.T) {
	t.Parallel()
	r := NewReader([]byte{2, 0, 0, 0, 0, 0, 0, 0, 2, 0xc3, 0x28, 9})
	if !r.Bool() || r.Int() != 0 {
		t.Error("bool, int")
	}
	if s := r.String(); s != "\ufffd(" {
		t.Errorf("bad UTF-8 reads as %q", s)
	}
	if !bytes.Equal(r.Rest(), []byte{9}) || r.Byte() != 9 || r.Err() != nil {
		t.Error("rest")
	}
	r.Fail(errors.ErrUnsupported)
	r.Fail(ErrShort)
	if r.Bool() || r.Byte() != 0 || r.Int() != 0 || r.Long() != 0 || r.Buffer() != nil || r.String() != "" || r.Strings() != nil || r.ACLs() != nil || r.Len() != 0 {
		t.Error("a failed reader reads on")
	}
	if !errors.Is(r.Err(), errors.ErrUnsupported) {
		t.Error(r.Err())
	}
	var zero Reader
	if zero.Len() != 0 || zero.Byte() != 0 || !errors.Is(zero.Err(), ErrShort) {
		t.Error("the zero reader")
	}
	frame := append(AppendString(nil, "text"), AppendBuffer(nil, []byte("data"))...)
	plain, alias := NewReader(frame), AliasReader(frame)
	s1, b1, s2, b2 := plain.String(), plain.Buffer(), alias.String(), alias.Buffer()
	clear(frame)
	if s1 != "text" || string(b1) != "data" || s2 == "text" || string(b2) == "data" || cap(b2) != 4 {
		t.Error("aliasing")
	}
}

func TestFrames(t *testing.T) {
	t.Parallel()
	b, mark := BeginFrame([]byte("x"))
	b = EndFrame(append(b, "payload"...), mark)
	if want := AppendFrame([]byte("x"), []byte("payload")); !bytes.Equal(b, want) || string(b) != "x\x00\x00\x00\x07payload" {
		t.Errorf("%q and %q", b, want)
	}
}

// The hot requests should decode without allocating.
func TestDecodeAllocations(t *testing.T) {
	path := "/some/path"
	for _, c := range []Record{
		&RequestHeader{Xid: 1, Op: OpGetData}, &ReplyHeader{}, &GetDataRequest{Path: path}, &ExistsRequest{Path: path},
		&GetChildrenRequest{Path: path}, &SetDataRequest{Path: path, Data: []byte("data")}, &DeleteRequest{Path: path},
		&CheckVersionRequest{Path: path}, &Stat{}, &SyncRequest{Path: path}, &GetACLRequest{Path: path}, &AddWatchRequest{Path: path},
	} {
		frame := c.Append(nil)
		out := make([]byte, 0, 200)
		r := new(Reader)
		if n := testing.AllocsPerRun(100, func() {
			*r = AliasReader(frame)
			c.Decode(r)
			out = c.Append(out[:0])
		}); n != 0 || r.Err() != nil || !bytes.Equal(out, frame) {
			t.Errorf("%T allocates %v times, %v", c, n, r.Err())
		}
	}
}
