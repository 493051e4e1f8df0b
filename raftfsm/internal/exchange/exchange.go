package exchange

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/zkgo/zkgo/internal/quorum"
)

const (
	// maxMessage bounds the size of a question and of its answer.
	maxMessage = 1 << 20
	// Timeout is for questions that are answered immediately. Empty messages,
	// signsPerTimeout in each Timeout, precede the answer to any other question.
	Timeout         = 2 * time.Second
	signsPerTimeout = 3
)

// Ask sends a question on conn and reads the answer. It closes conn.
func Ask(ctx context.Context, conn net.Conn, question, answer any) error {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	defer conn.Close()
	if err := Write(conn, question); err != nil {
		return err
	}
	err := awaitAnswer(conn, answer)
	if err == nil {
		return nil
	}
	if !errors.Is(ctx.Err(), context.Canceled) && (quorum.IsTimeout(err) || ctx.Err() != nil) {
		quorum.BlamePath(conn)
	}
	return fmt.Errorf("no answer: %w", err)
}

// Respond reads one question from conn and answers it. If the answer may need longer than
// Timeout, slow tells the server that asks to wait for it.
func Respond[Q any](conn net.Conn, slow bool, answer func(*Q) any) {
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(Timeout))
	var q Q
	if err := Read(conn, &q); err != nil {
		return
	}
	stop := func() {}
	if slow {
		stop = sayWorking(conn)
	}
	a := answer(&q)
	stop()
	_ = conn.SetWriteDeadline(time.Now().Add(Timeout))
	_ = Write(conn, a)
}

// sayWorking sends empty messages until the caller calls stop.
func sayWorking(conn net.Conn) (stop func()) {
	ended, left := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(left)
		tick := time.NewTicker(Timeout / signsPerTimeout)
		defer tick.Stop()
		for {
			_ = conn.SetWriteDeadline(time.Now().Add(Timeout))
			if _, err := conn.Write(make([]byte, 4)); err != nil {
				return
			}
			select {
			case <-tick.C:
			case <-ended:
				return
			}
		}
	}()
	return func() {
		close(ended)
		<-left
	}
}

// awaitAnswer reads the answer and the empty messages before it. The first empty
// message announces that the peer sends more in time; servers of earlier releases send
// none.
func awaitAnswer(conn net.Conn, answer any) error {
	for {
		var size [4]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return err
		}
		if n := binary.BigEndian.Uint32(size[:]); n > 0 {
			return readSized(conn, n, answer)
		}
		_ = conn.SetReadDeadline(time.Now().Add(Timeout))
	}
}

// Write writes one message.
func Write(w io.Writer, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	b := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(data)), uint32(len(data)))
	_, err = w.Write(append(b, data...))
	return err
}

// Read reads one message.
func Read(r io.Reader, v any) error {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return err
	}
	return readSized(r, binary.BigEndian.Uint32(size[:]), v)
}

func readSized(r io.Reader, n uint32, v any) error {
	if n > maxMessage {
		return fmt.Errorf("message of %d bytes", n)
	}
	data := make([]byte, n)
	if _, err := io.ReadFull(r, data); err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("message between servers: %w", err)
	}
	return nil
}
