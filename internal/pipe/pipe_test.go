package pipe

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

func TestPipeCarriesEverythingInOrder(t *testing.T) {
	t.Parallel()
	a, b := New("a", "b")
	want := bytes.Repeat([]byte("0123456789"), room/5) // twice the pipe's capacity
	go func() {
		a.Write(want)
		a.Close()
	}()
	got, err := io.ReadAll(b)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %d, %v", len(got), len(want), err)
	}
	if _, err := b.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("write to a closed pipe: %v", err)
	}
}

func TestPipeTryWriteDoesNotWait(t *testing.T) {
	t.Parallel()
	a, _ := New("a", "b")
	if n, err := a.TryWrite(make([]byte, room+10)); n != room || err != nil {
		t.Errorf("%d, %v; want what fits, %d", n, err, room)
	}
	if n, err := a.TryWrite([]byte("x")); n != 0 || err != nil {
		t.Errorf("%d, %v; want nothing", n, err)
	}
}

func TestPipeDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := New("a", "b")
		began := time.Now()
		a.SetReadDeadline(began.Add(time.Second))
		if _, err := a.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("read: %v after %v", err, time.Since(began))
		}
		a.SetWriteDeadline(began.Add(2 * time.Second))
		if n, err := a.Write(make([]byte, 2*room)); n != room || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("write: %d, %v", n, err)
		}
		a.SetDeadline(time.Time{})
		go func() { b.Write([]byte("x")) }()
		if n, err := a.Read(make([]byte, 1)); n != 1 || err != nil {
			t.Errorf("read without a deadline: %d, %v", n, err)
		}
		a.Close()
		b.Close()
	})
}
