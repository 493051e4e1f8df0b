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

	"github.com/zkgo/zkgo/internal/words"
)

// Limits of an answer.
const (
	answerBytes = 4 << 20
	answerTime  = 3 * time.Second
)

// byWords sends srvr, which every server answers, and mntr.
func (w *Watcher) byWords(ctx context.Context, s *Server) error {
	begin := time.Now()
	text, refused := words.Ask(ctx, w.Dial, s.Address, "srvr")
	s.AnswerMillis = float64(time.Since(begin).Microseconds()) / 1000
	if refused == nil {
		s.srvr(text)
		if s.Mode == "" {
			refused = errors.New(strings.TrimSpace(text))
		}
	}
	more, err := words.Ask(ctx, w.Dial, s.Address, "mntr")
	if err != nil {
		if refused != nil {
			return refused
		}
		return err
	}
	some := false
	for key, value := range words.Fields(more, "\t") {
		some = true
		s.monitor(key, value)
	}
	if !some {
		return errors.New(strings.TrimSpace(more))
	}
	return nil
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
