package quorum

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

func dialed(t *testing.T, m *Memory) (client, server net.Conn) {
	t.Helper()
	ln, err := m.Host("b").Listen("b:1")
	if err != nil {
		t.Fatal(err)
	}
	client, err = m.Host("a").Dial(t.Context(), "b:1")
	if err != nil {
		t.Fatal(err)
	}
	server, err = ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return client, server
}

func readN(t *testing.T, c net.Conn, n int) string {
	t.Helper()
	b := make([]byte, n)
	if _, err := io.ReadFull(c, b); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestMemoryHoldDelaysUntilHeal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory()
		c, s := dialed(t, m)
		m.Hold("a", "b")
		c.Write([]byte("one"))
		_ = s.SetReadDeadline(time.Now().Add(time.Hour))
		if _, err := s.Read(make([]byte, 3)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("read over a held link: %v", err)
		}
		s.Write([]byte("two"))
		if got := readN(t, c, 3); got != "two" {
			t.Fatalf("the other direction brought %q", got)
		}
		_ = s.SetReadDeadline(time.Time{})
		m.Heal("a", "b")
		if got := readN(t, s, 3); got != "one" {
			t.Fatalf("after the heal came %q", got)
		}
		m.Delay("a", "b", time.Minute)
		start := time.Now()
		c.Write([]byte("three"))
		c.Close()
		if readN(t, s, 5); time.Since(start) != time.Minute {
			t.Fatalf("came after %v", time.Since(start))
		}
		if _, err := s.Read(make([]byte, 1)); err != io.EOF {
			t.Fatalf("after close: %v", err)
		}
	})
}

func TestMemoryKillResetsAndRefuses(t *testing.T) {
	t.Parallel()
	m := NewMemory()
	c, _ := dialed(t, m)
	m.Kill("b")
	if _, err := c.Read(make([]byte, 1)); err == nil || err == io.EOF {
		t.Fatalf("read from a killed host: %v", err)
	}
	if _, err := m.Host("a").Dial(t.Context(), "b:1"); !Refused(err) {
		t.Fatalf("dial to a killed host: %v", err)
	}
}

func TestMemoryDialOverPartitionHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory()
		dialed(t, m)
		m.Partition([]string{"a"}, []string{"b"})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := m.Host("a").Dial(ctx, "b:1")
		if !errors.Is(err, context.DeadlineExceeded) || Refused(err) {
			t.Fatalf("got %v", err)
		}
		m.Rejoin([]string{"a"}, []string{"b"})
		if _, err := m.Host("a").Dial(t.Context(), "b:1"); err != nil {
			t.Fatal(err)
		}
	})
}

func TestTCPRefusal(t *testing.T) {
	t.Parallel()
	ln, err := new(TCP).Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	ln.Close()
	if _, err := new(TCP).Dial(t.Context(), addr); !Refused(err) {
		t.Fatalf("dial to a closed port: %v", err)
	}
}
