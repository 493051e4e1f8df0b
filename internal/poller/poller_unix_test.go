//go:build unix

package poller

import (
	"errors"
	"io"
	"net"
	"slices"
	"syscall"
	"testing"
)

// socketPair returns the descriptors' owners of a connection: the side that the tests
// poll, with its RawConn, and its peer.
func socketPair(t *testing.T) (syscall.RawConn, *net.TCPConn, *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	peer, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { peer.Close() })
	nc, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	raw, err := nc.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	return raw, nc.(*net.TCPConn), peer.(*net.TCPConn)
}

// newPoller returns a Poller with names as handles.
func newPoller(t *testing.T) *Poller[string] {
	t.Helper()
	p, err := New[string]()
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// mustAdd watches a socket.
func mustAdd(t *testing.T, p *Poller[string], raw syscall.RawConn, h string) ID {
	t.Helper()
	id, err := p.Add(raw, h)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// mustWrite writes one byte.
func mustWrite(t *testing.T, nc net.Conn) {
	t.Helper()
	if _, err := nc.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
}

// next returns the only event.
func next(t *testing.T, p *Poller[string]) Event[string] {
	t.Helper()
	var events [8]Event[string]
	n, err := p.Wait(events[:])
	if err != nil || n != 1 {
		t.Fatalf("%d events, %v: %v", n, events[:n], err)
	}
	return events[0]
}

func TestEveryArrivalIsOneEvent(t *testing.T) {
	t.Parallel()
	p := newPoller(t)
	early, _, earlyPeer := socketPair(t)
	late, _, latePeer := socketPair(t)
	mustWrite(t, earlyPeer)
	if err := early.Read(func(fd uintptr) bool { // until it has arrived
		n, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK)
		return n > 0 || err != syscall.EAGAIN
	}); err != nil {
		t.Fatal(err)
	}
	mustAdd(t, p, early, "early")
	if e := next(t, p); e != (Event[string]{"early", false}) {
		t.Errorf("%+v for input that was there before Add", e)
	}
	mustAdd(t, p, late, "late")
	for range 3 { // the unread input of the other one should not cause a new event
		mustWrite(t, latePeer)
		if e := next(t, p); e != (Event[string]{"late", false}) {
			t.Errorf("%+v for new input", e)
		}
	}
	if n := p.Len(); n != 2 {
		t.Errorf("%d sockets are watched", n)
	}
}

func TestHungUp(t *testing.T) {
	t.Parallel()
	p := newPoller(t)
	raw, _, peer := socketPair(t)
	mustAdd(t, p, raw, "a")
	if err := peer.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if e := next(t, p); e != (Event[string]{"a", true}) {
		t.Errorf("%+v", e)
	}
}

// We reuse IDs. A removed socket should cause no events, even if it is closed first.
func TestRemove(t *testing.T) {
	t.Parallel()
	p := newPoller(t)
	gone, _, gonePeer := socketPair(t)
	closed, nc, _ := socketPair(t)
	stays, _, staysPeer := socketPair(t)
	first, second := mustAdd(t, p, gone, "gone"), mustAdd(t, p, closed, "closed")
	p.Remove(gone, first)
	nc.Close()
	p.Remove(closed, second)
	if n := p.Len(); n != 0 {
		t.Errorf("%d sockets are watched", n)
	}
	mustWrite(t, gonePeer)
	if id := mustAdd(t, p, stays, "stays"); id != first && id != second {
		t.Errorf("the new ID is %d, neither %d nor %d", id, first, second)
	}
	mustWrite(t, staysPeer)
	if e := next(t, p); e != (Event[string]{"stays", false}) {
		t.Errorf("%+v", e)
	}
}

// An event that was ready before Remove should not reach a handle that is gone.
func TestEventOfAFreedID(t *testing.T) {
	t.Parallel()
	p := newPoller(t)
	raw, _, peer := socketPair(t)
	other, _, otherPeer := socketPair(t)
	id := mustAdd(t, p, raw, "a")
	mustAdd(t, p, other, "b")
	mustWrite(t, peer)
	p.mu.Lock()
	p.release(id) // as if Remove came between the kernel's event and its dispatch
	p.mu.Unlock()
	mustWrite(t, otherPeer)
	if e := next(t, p); e.Handle != "b" {
		t.Errorf("%+v", e)
	}
}

// Events that don't fit should go to the next callers, and every caller should get
// different ones.
func TestWorkersShareTheEvents(t *testing.T) {
	t.Parallel()
	p := newPoller(t)
	want := []string{"a", "b", "c", "d", "e"}
	got := make(chan string)
	for range 3 {
		go func() {
			var one [1]Event[string]
			for {
				if _, err := p.Wait(one[:]); err != nil {
					return
				}
				got <- one[0].Handle
			}
		}()
	}
	for _, h := range want {
		raw, _, peer := socketPair(t)
		mustAdd(t, p, raw, h)
		mustWrite(t, peer)
	}
	var all []string
	for range want {
		all = append(all, <-got)
	}
	if slices.Sort(all); !slices.Equal(all, want) {
		t.Errorf("%q", all)
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	p := newPoller(t)
	raw, _, peer := socketPair(t)
	mustAdd(t, p, raw, "a")
	const workers = 3
	errs := make(chan error)
	for range workers {
		go func() {
			var one [1]Event[string]
			_, err := p.Wait(one[:])
			errs <- err
		}()
	}
	p.Close()
	for range workers {
		if err := <-errs; !errors.Is(err, ErrClosed) {
			t.Errorf("Wait: %v", err)
		}
	}
	if id, err := p.Add(raw, "b"); !errors.Is(err, ErrClosed) || id != NoID {
		t.Errorf("Add: %d, %v", id, err)
	}
	mustWrite(t, peer)
	read := make([]byte, 2)
	n, err := 0, ErrNoInput
	if errRead := raw.Read(func(fd uintptr) bool {
		n, err = Recv(fd, read)
		return !errors.Is(err, ErrNoInput)
	}); errRead != nil || n != 1 || err != nil {
		t.Errorf("the socket has to stay open: %d, %v, %v", n, err, errRead)
	}
}

// If the kernel fails, one worker should get the error, and all should end.
func TestFailure(t *testing.T) {
	t.Parallel()
	p := newPoller(t)
	const workers = 3
	errs := make(chan error)
	for range workers {
		go func() {
			var one [1]Event[string]
			_, err := p.Wait(one[:])
			errs <- err
		}()
	}
	p.kernel.close()
	reasons := 0
	for range workers {
		switch err := <-errs; {
		case err == nil:
			t.Error("Wait returns no error")
		case !errors.Is(err, ErrClosed):
			reasons++
		}
	}
	if reasons != 1 {
		t.Errorf("%d workers got the error", reasons)
	}
}

func TestRecv(t *testing.T) {
	if !Supported {
		t.Skip("not on this system")
	}
	raw, _, peer := socketPair(t)
	for _, room := range []int{16, 64 << 10} { // the two ways to the kernel
		b := make([]byte, room)
		n, err := -1, error(nil)
		recv := func(fd uintptr) { n, err = Recv(fd, b) }
		if e := raw.Control(recv); e != nil || n != 0 || !errors.Is(err, ErrNoInput) {
			t.Errorf("without input: %d, %v, %v", n, err, e)
		}
		if allocs := testing.AllocsPerRun(10, func() { _ = raw.Control(recv) }); allocs != 0 {
			t.Errorf("%v allocations", allocs)
		}
		mustWrite(t, peer)
		if e := raw.Read(func(fd uintptr) bool {
			recv(fd)
			return !errors.Is(err, ErrNoInput)
		}); e != nil || n != 1 || err != nil {
			t.Errorf("with input: %d, %v, %v", n, err, e)
		}
	}
	peer.Close()
	var n int
	var err error
	if e := raw.Read(func(fd uintptr) bool {
		n, err = Recv(fd, make([]byte, 16))
		return !errors.Is(err, ErrNoInput)
	}); e != nil || n != 0 || err != io.EOF {
		t.Errorf("at the end: %d, %v, %v", n, err, e)
	}
}

// A Writer should write until the socket is full, and report an error of the socket.
func TestWriter(t *testing.T) {
	if !Supported {
		t.Skip("not on this system")
	}
	raw, nc, peer := socketPair(t)
	if err := errors.Join(nc.SetWriteBuffer(16<<10), peer.SetReadBuffer(16<<10)); err != nil {
		t.Fatal(err)
	}
	w := NewWriter()
	sent := 0
	for _, size := range []int{1 << 10, 64 << 20} { // the two ways to the kernel
		n, err := w.TryWrite(raw, make([]byte, size))
		if err != nil || n == 0 || size > 1<<20 && n == size {
			t.Fatalf("%d of %d bytes: %v", n, size, err)
		}
		sent += n
	}
	full := make([]byte, 100)
	if n := testing.AllocsPerRun(10, func() { _, _ = w.TryWrite(raw, full) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if _, err := io.ReadFull(peer, make([]byte, sent)); err != nil {
		t.Errorf("the peer did not get %d bytes: %v", sent, err)
	}
	nc.Close()
	if n, err := w.TryWrite(raw, full); n != 0 || !errors.Is(err, net.ErrClosed) {
		t.Errorf("into a closed socket: %d, %v", n, err)
	}
}
