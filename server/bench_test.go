package server

import (
	"io"
	"testing"

	"github.com/zkgo/zkgo/proto"
)

// benchmark sends b.N requests, window at a time, over an in-process connection to a
// server in memory. Allocations count for the whole server.
func benchmark(b *testing.B, window int, op proto.Op, req proto.Record, replySize int) {
	s := startServer(b)
	w := connect(b, s)
	w.create("/a", make([]byte, 100), proto.ModePersistent)
	var batch []byte
	for i := range int32(window) {
		batch = appendRequest(batch, i, op, req)
	}
	one := len(batch) / window
	replies := make([]byte, window*replySize)
	b.ReportAllocs()
	b.ResetTimer()
	for left := b.N; left > 0; left -= window {
		n := min(window, left)
		w.write(batch[:n*one])
		if _, err := io.ReadFull(w.nc, replies[:n*replySize]); err != nil {
			b.Fatal(err)
		}
	}
}

const replyHead = proto.LengthSize + proto.ReplyHeaderSize

func BenchmarkGet1(b *testing.B) {
	benchmark(b, 1, proto.OpGetData, &proto.GetDataRequest{Path: "/a"}, replyHead+4+100+proto.StatSize)
}

func BenchmarkGet64(b *testing.B) {
	benchmark(b, 64, proto.OpGetData, &proto.GetDataRequest{Path: "/a"}, replyHead+4+100+proto.StatSize)
}

func BenchmarkSet1(b *testing.B) {
	benchmark(b, 1, proto.OpSetData, &proto.SetDataRequest{Path: "/a", Data: make([]byte, 100), Version: -1}, replyHead+proto.StatSize)
}

func BenchmarkSet64(b *testing.B) {
	benchmark(b, 64, proto.OpSetData, &proto.SetDataRequest{Path: "/a", Data: make([]byte, 100), Version: -1}, replyHead+proto.StatSize)
}
