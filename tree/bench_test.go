package tree

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"

	"github.com/zkgo/zkgo/proto"
)

// million is the number of nodes of the large benchmarks.
const million = 1_000_000

// filled returns a tree with n nodes of 100 bytes below 100 parents.
func filled(tb testing.TB, n int) *Tree {
	tb.Helper()
	t := New()
	tx := Txn{Time: 1}
	req := proto.CreateRequest{ACL: proto.OpenACL(), Data: make([]byte, 100)}
	for i := range n {
		if i < 100 {
			req.Path = "/dir" + strconv.Itoa(i)
		} else {
			req.Path = "/dir" + strconv.Itoa(i%100) + "/node" + strconv.Itoa(i)
		}
		tx.Zxid++
		if r := t.Apply(&tx, proto.OpCreate, &req); r.Code != proto.Ok {
			tb.Fatal(req.Path, r.Code)
		}
	}
	return t
}

func BenchmarkCreate(b *testing.B) {
	t := New()
	tx := Txn{Time: 1}
	req := proto.CreateRequest{ACL: proto.OpenACL(), Data: make([]byte, 100), Flags: int32(proto.ModePersistentSequential), Path: "/node"}
	b.ReportAllocs()
	for b.Loop() {
		tx.Zxid++
		t.Apply(&tx, proto.OpCreate, &req)
	}
}

func BenchmarkSetData(b *testing.B) {
	t := filled(b, 10_000)
	tx := Txn{Time: 1, Zxid: t.LastZxid()}
	req := proto.SetDataRequest{Data: make([]byte, 100), Path: "/dir0/node100", Version: -1}
	b.ReportAllocs()
	for b.Loop() {
		tx.Zxid++
		t.Apply(&tx, proto.OpSetData, &req)
	}
}

func BenchmarkGet(b *testing.B) {
	t := filled(b, 100_000)
	paths := make([]string, 1024)
	for i := range paths {
		paths[i] = "/dir" + strconv.Itoa(i*97%100) + "/node" + strconv.Itoa(100+i*97)
	}
	var stat proto.Stat
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if n := t.Get(paths[i%1024]); n != nil {
			n.Stat(&stat)
		}
	}
}

func BenchmarkMulti(b *testing.B) {
	t := filled(b, 1000)
	tx := Txn{Time: 1, Zxid: t.LastZxid()}
	set := &proto.SetDataRequest{Data: make([]byte, 100), Path: "/dir0/node100", Version: -1}
	check := &proto.CheckVersionRequest{Path: "/dir1", Version: -1}
	req := proto.MultiRequest{Ops: []proto.MultiOp{{Op: proto.OpCheck, Req: check}, {Op: proto.OpSetData, Req: set}}}
	b.ReportAllocs()
	for b.Loop() {
		tx.Zxid++
		t.Apply(&tx, proto.OpMulti, &req)
	}
}

// BenchmarkMillion reports the memory of a million nodes of 100 bytes, created one by one
// and restored from a snapshot.
func BenchmarkMillion(b *testing.B) {
	for b.Loop() {
		before := heap()
		t := filled(b, million)
		b.ReportMetric(float64(heap()-before)/million, "B/node")
		file, s := new(bytes.Buffer), t.Snapshot()
		if _, err := s.WriteTo(file); err != nil {
			b.Fatal(err)
		}
		s.Release()
		if err := t.Restore(file); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(heap()-before)/million, "B/restored")
		runtime.KeepAlive(t)
	}
}

// BenchmarkSnapshot writes a million nodes. It then sets nodes at random, which scatters
// the texts of neighbouring nodes in memory, and writes them again.
func BenchmarkSnapshot(b *testing.B) {
	t := filled(b, million)
	b.Run("new", func(b *testing.B) { writeSnapshots(b, t) })
	setAmong(b, 2*million, t, million, true)
	b.Run("set", func(b *testing.B) { writeSnapshots(b, t) })
}

func writeSnapshots(b *testing.B, t *Tree) {
	for b.Loop() {
		s := t.Snapshot()
		n, err := s.WriteTo(io.Discard)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(n)
		s.Release()
	}
}

// BenchmarkTakeSnapshot starts snapshots without writing them: the part that blocks
// transactions.
func BenchmarkTakeSnapshot(b *testing.B) {
	t := filled(b, 100_000)
	for b.Loop() {
		t.Snapshot().drop(errReleased)
	}
}

// BenchmarkRestore restores a million nodes.
func BenchmarkRestore(b *testing.B) {
	var file bytes.Buffer
	s := filled(b, million).Snapshot()
	n, err := s.WriteTo(&file)
	if err != nil {
		b.Fatal(err)
	}
	t := New()
	b.SetBytes(n)
	for b.Loop() {
		if err := t.Restore(bytes.NewReader(file.Bytes())); err != nil {
			b.Fatal(err)
		}
	}
}

// heap returns the bytes of live objects.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkSetAmong sets random znodes in trees of several sizes, in batches of 32, with
// and without prefetching each batch.
func BenchmarkSetAmong(b *testing.B) {
	for _, n := range []int{10_000, million, 4 * million} {
		t := filled(b, n)
		for _, ahead := range []string{"one by one", "ahead"} {
			b.Run(fmt.Sprintf("%d/%s", n, ahead), func(b *testing.B) { setAmong(b, b.N, t, n, ahead == "ahead") })
		}
	}
}

// setAmong sets count znodes of filled(n) at random.
func setAmong(b *testing.B, count int, t *Tree, n int, ahead bool) {
	tx := Txn{Time: 1, Zxid: t.LastZxid()}
	req := proto.SetDataRequest{Data: make([]byte, 100), Version: -1}
	random, paths := rand.New(rand.NewPCG(1, 2)), make([]string, PrefetchMax)
	for done := 0; done < count; done += len(paths) {
		b.StopTimer()
		for i := range paths {
			k := 100 + random.IntN(n-100)
			paths[i] = "/dir" + strconv.Itoa(k%100) + "/node" + strconv.Itoa(k)
		}
		b.StartTimer()
		if ahead {
			t.Prefetch(paths)
		}
		for _, req.Path = range paths {
			tx.Zxid++
			if r := t.Apply(&tx, proto.OpSetData, &req); r.Code != proto.Ok {
				b.Fatal(req.Path, r.Code)
			}
		}
	}
}
