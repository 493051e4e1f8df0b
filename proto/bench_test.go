package proto

import "testing"

// Benchmarks of the codec: the cost of every request and reply before the server does any
// work.

func BenchmarkAppendRequest(b *testing.B) {
	set := SetDataRequest{Path: "/app/config/feature-17", Data: make([]byte, 100), Version: -1}
	h := RequestHeader{Xid: 1, Op: OpSetData}
	var out []byte
	b.ReportAllocs()
	for b.Loop() {
		frame, mark := BeginFrame(out[:0])
		out = EndFrame(set.Append(h.Append(frame)), mark)
	}
	b.SetBytes(int64(len(out)))
}

func BenchmarkDecodeRequest(b *testing.B) {
	set := SetDataRequest{Path: "/app/config/feature-17", Data: make([]byte, 100), Version: -1}
	h := RequestHeader{Xid: 1, Op: OpSetData}
	frame := set.Append(h.Append(nil))
	b.SetBytes(int64(len(frame)))
	b.ReportAllocs()
	for b.Loop() {
		r := AliasReader(frame)
		h.Decode(&r)
		set.Decode(&r)
		if r.Err() != nil {
			b.Fatal(r.Err())
		}
	}
}

func BenchmarkDecodeMulti(b *testing.B) {
	var multi MultiRequest
	for range 10 {
		multi.Ops = append(multi.Ops, MultiOp{Op: OpSetData, Req: &SetDataRequest{Path: "/app/config/feature-17", Data: make([]byte, 100), Version: -1}})
	}
	frame := multi.Append(nil)
	b.SetBytes(int64(len(frame)))
	b.ReportAllocs()
	for b.Loop() {
		r := AliasReader(frame)
		var got MultiRequest
		if got.Decode(&r); r.Err() != nil {
			b.Fatal(r.Err())
		}
	}
}

func BenchmarkAppendReply(b *testing.B) {
	reply := GetDataResponse{Data: make([]byte, 100), Stat: Stat{Czxid: 1, Mzxid: 2, DataLength: 100}}
	h := ReplyHeader{Xid: 1, Zxid: 2}
	var out []byte
	b.ReportAllocs()
	for b.Loop() {
		frame, mark := BeginFrame(out[:0])
		out = EndFrame(reply.Append(h.Append(frame)), mark)
	}
	b.SetBytes(int64(len(out)))
}
