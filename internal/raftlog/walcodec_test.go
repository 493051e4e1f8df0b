package raftlog

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/hashicorp/raft"
)

// TestCodecRoom: the entries of one append share memory that the next append reuses, and
// don't overlap.
func TestCodecRoom(t *testing.T) {
	t.Parallel()
	c := new(codec)
	for round := range 3 {
		c.room.empty()
		var entries []*raft.Log
		var encoded [][]byte
		for i, size := range []int{0, 10, 3000, 100, maxRoom / 2, 1} {
			l := &raft.Log{Index: uint64(round*10 + i), Term: 7, Data: bytes.Repeat([]byte{byte(round*10 + i)}, size)}
			var b bytes.Buffer
			if err := c.Encode(l, &b); err != nil {
				t.Fatal(err)
			}
			entries, encoded = append(entries, l), append(encoded, b.Bytes())
		}
		for i, b := range encoded {
			var got raft.Log
			if err := c.Decode(b, &got); err != nil {
				t.Fatal(err)
			}
			if got.Index != entries[i].Index || !bytes.Equal(got.Data, entries[i].Data) {
				t.Fatalf("round %d: entry %d is %d with %d bytes", round, i, got.Index, len(got.Data))
			}
		}
	}
}

// TestCodecRoomAllocates: encoding allocates nothing once there is room, and the codec
// keeps no more than maxRoom.
func TestCodecRoomAllocates(t *testing.T) { //nolint:paralleltest // it counts allocations
	c := new(codec)
	l := &raft.Log{Index: 1, Data: make([]byte, 4000)}
	var b bytes.Buffer
	if n := testing.AllocsPerRun(100, func() {
		c.room.empty()
		b = bytes.Buffer{}
		if err := c.Encode(l, &b); err != nil {
			t.Fatal(err)
		}
	}); n > 1 { // bytes.NewBuffer's, unless it is on the stack
		t.Fatalf("%v allocations", n)
	}
	l.Data = make([]byte, maxRoom+1)
	b = bytes.Buffer{}
	if err := c.Encode(l, &b); err != nil {
		t.Fatal(err)
	}
	if c.room.empty(); cap(c.room.b) != 0 {
		t.Fatal(fmt.Sprint("it keeps ", cap(c.room.b), " bytes"))
	}
}
