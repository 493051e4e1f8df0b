package overview

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// Limits of an answer.
const (
	answerBytes = 4 << 20
	answerTime  = 3 * time.Second
)

// ErrTLSAlert is the cause when a server answers a four-letter word with an alert of TLS.
var ErrTLSAlert = errors.New("the server expects TLS")

// ErrNotServing is the cause when a server answers that it doesn't serve clients.
var ErrNotServing = errors.New("This ZooKeeper instance is not currently serving requests") //nolint:staticcheck // the server's text

// word sends a four-letter word to a server.
func (w *Watcher) word(ctx context.Context, address, word string) (string, error) {
	dial := w.Dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	conn, err := dial(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) }) //nolint:errcheck // the connection is closed anyway
	defer stop()
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(io.LimitReader(conn, answerBytes))
	text := string(answer)
	switch {
	case text == "" && err != nil:
		return "", err
	case text == "":
		return "", fmt.Errorf("no answer to %s: %w", word, io.EOF) // the server closed the connection
	case strings.HasPrefix(text, "\x15\x03"):
		return "", ErrTLSAlert
	case strings.Contains(text, "is not executed because it is not in the whitelist"):
		return "", fmt.Errorf("%s is not in 4lw.commands.whitelist", word)
	}
	return text, nil
}

// byWords sends srvr, which every server answers, and mntr.
func (w *Watcher) byWords(ctx context.Context, s *Server) error {
	begin := time.Now()
	text, err := w.word(ctx, s.Address, "srvr")
	s.AnswerMillis = float64(time.Since(begin).Microseconds()) / 1000
	refused := err
	if err == nil {
		s.srvr(text)
		if s.Mode == "" {
			refused = notServing(text)
		}
	}
	more, err := w.word(ctx, s.Address, "mntr")
	if err != nil {
		if refused != nil {
			return refused
		}
		return err
	}
	some := false
	for line := range strings.Lines(more) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if ok {
			some = true
			s.monitor(key, value)
		}
	}
	if !some {
		return notServing(more)
	}
	return nil
}

// notServing returns the error for an answer without the server's state.
func notServing(answer string) error {
	answer = strings.TrimSpace(answer)
	if answer == ErrNotServing.Error() {
		return ErrNotServing
	}
	return errors.New(answer)
}

// byAdmin queries the AdminServer on the same host.
func (w *Watcher) byAdmin(ctx context.Context, s *Server) error {
	base := w.Admin
	if !strings.Contains(base, "://") {
		host, _, err := net.SplitHostPort(s.Address)
		if err != nil {
			return err
		}
		base = "http://" + net.JoinHostPort(host, base)
	}
	base = strings.TrimSuffix(base, "/")
	begin := time.Now()
	values, err := w.command(ctx, base, "monitor")
	s.AnswerMillis = float64(time.Since(begin).Microseconds()) / 1000
	if err != nil {
		return err
	}
	for key, value := range values {
		s.monitor(key, fmt.Sprint(value))
	}
	stats, err := w.command(ctx, base, "server_stats")
	if err != nil {
		return err
	}
	if inner, ok := stats["server_stats"].(map[string]any); ok {
		s.Zxid = (*Zxid)(whole(fmt.Sprint(inner["last_processed_zxid"])))
	}
	return nil
}

// command runs a command of the AdminServer.
func (w *Watcher) command(ctx context.Context, base, name string) (map[string]any, error) {
	c := w.HTTP
	if c == nil {
		c = http.DefaultClient
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/commands/"+name, nil)
	if err != nil {
		return nil, err
	}
	reply, err := c.Do(request)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(io.LimitReader(reply.Body, answerBytes))
	if err != nil {
		return nil, err
	}
	if reply.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s/commands/%s: %s", base, name, reply.Status)
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber() // a zxid has more digits than a float
	var values map[string]any
	if err := decoder.Decode(&values); err != nil {
		return nil, fmt.Errorf("%s/commands/%s: %w", base, name, err)
	}
	if problem := values["error"]; problem != nil {
		return nil, fmt.Errorf("%s/commands/%s: %v", base, name, problem)
	}
	return values, nil
}
