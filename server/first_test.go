package server

import (
	"testing"

	"github.com/zkgo/zkgo/proto"
)

func TestFirst(t *testing.T) {
	s := startServer(t)
	w := connect(t, s)
	w.create("/a", []byte("x"), proto.ModePersistent)
	w.set("/a", "hello")
	if data, st := w.get("/a", false); data != "hello" || st.Version != 1 {
		t.Errorf("%q %+v", data, st)
	}
	w.must(proto.OpPing, nil)
	w.must(proto.OpCloseSession, nil)
	w.wantClosed()
}
