package takeover

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/zkgo/zkgo/internal/mirrored"
	"github.com/zkgo/zkgo/internal/offline/zkfiles"
	"github.com/zkgo/zkgo/raftfsm"
)

// Socket returns the path of the socket for the commands to a mirror, in the data directory of
// its server. Only the user who owns the directory can use it.
func Socket(dataDir string) string { return filepath.Join(dataDir, "mirror.sock") }

// Serve serves commands at the socket until ctx ends. It returns once it listens.
func (m *Mirror) Serve(ctx context.Context, dataDir string, n *raftfsm.Node) (done <-chan struct{}, err error) {
	path := Socket(dataDir)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) { // of an earlier process, which is gone: the directory is ours
		return nil, fmt.Errorf("takeover: %w", err)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("takeover: the socket for the zkgo mirror commands: %w (its path must be short: choose another dataDir)", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	c := &control{m: m, n: n}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) { c.reply(w, m.StatusOf(n), nil) })
	mux.HandleFunc("GET /snapshot", c.snapshot)
	mux.HandleFunc("POST /cutover", c.cutover)
	mux.HandleFunc("POST /phase/{phase}", c.phase)
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	var work sync.WaitGroup
	if m.cfg.Memory.From != "" {
		work.Go(func() { m.remember(ctx, dataDir, n) })
	}
	go func() {
		defer close(ended)
		defer work.Wait()
		defer stop()
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			m.cfg.Logger.Error("the socket for the commands to the mirror has failed", "err", err)
		}
	}()
	return ended, nil
}

// Announce logs the phase of the mirror in the state, for a server that was started without a
// Mirror. It reports whether there is one that commands can act on.
func (m *Mirror) Announce(n *raftfsm.Node) bool {
	state, _, _ := n.Mirroring().State()
	switch state.Phase {
	case mirrored.Following:
		m.cfg.Logger.Warn("the state belongs to another ensemble, which zkgo server does not follow: not serving clients; start zkgo mirror instead")
	case mirrored.Fenced:
		m.cfg.Logger.Warn("the state was returned to ZooKeeper: not serving clients until zkgo mirror resume")
	case mirrored.Open:
		m.cfg.Logger.Info("rollback to ZooKeeper is possible until zkgo mirror finalize")
	default:
		return false
	}
	return true
}

// control answers the commands at the socket.
type control struct {
	m *Mirror
	n *raftfsm.Node
}

// answer is the answer to a command, or one line of the answer.
type answer struct {
	Step  string          `json:"step,omitempty"`  // of a cutover: what happens now
	Error string          `json:"error,omitempty"` // why nothing was done, or why part of the answer is unknown
	Value json.RawMessage `json:"value,omitempty"` // in the last line
}

func (*control) reply(w http.ResponseWriter, value any, err error) {
	var a answer
	b, wrong := json.Marshal(value)
	if err = errors.Join(err, wrong); err != nil {
		a.Error = err.Error()
	}
	a.Value = b
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(a) // the caller has left, or sees that the answer is incomplete
}

// phase changes the phase of the mirror.
func (c *control) phase(w http.ResponseWriter, r *http.Request) {
	to := map[string]mirrored.Phase{"open": mirrored.Open, "fenced": mirrored.Fenced, "done": mirrored.Done}[r.PathValue("phase")]
	err := fmt.Errorf("unknown phase %q", r.PathValue("phase"))
	if to != mirrored.None {
		err = c.n.Mirroring().SetPhase(r.Context(), to)
	}
	c.reply(w, c.m.StatusOf(c.n), err)
}

// snapshot sends the state as a snapshot file of ZooKeeper, while nothing changes it.
func (c *control) snapshot(w http.ResponseWriter, _ *http.Request) {
	state, _, zxid := c.n.Mirroring().State()
	if state.Phase != mirrored.Fenced {
		http.Error(w, fmt.Sprintf("clients may still change the state: the phase is %v, not fenced", state.Phase), http.StatusConflict)
		return
	}
	t := c.n.Tree()
	t.Lock()
	snap, sessions := t.Snapshot(), c.n.Sessions().Clone()
	t.Unlock()
	defer snap.Release()
	w.Header().Set("X-Zxid", fmt.Sprintf("%x", zxid))
	w.Header().Set("Trailer", "X-Complete")
	if err := zkfiles.WriteSnapshot(w, snap, sessions, zkfiles.None); err != nil {
		c.m.cfg.Logger.Warn("the snapshot for ZooKeeper could not be sent", "err", err)
		return
	}
	w.Header().Set("X-Complete", "true")
}

// Client sends commands to the server that uses a data directory.
type Client struct{ http *http.Client }

// NewClient returns a Client for the server with that data directory.
func NewClient(dataDir string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", Socket(dataDir))
		if err != nil {
			return nil, fmt.Errorf("no server with a mirror runs on %s (start one with zkgo mirror): %w", dataDir, err)
		}
		return conn, nil
	}
	return &Client{&http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
}

// Status asks for the status.
func (c *Client) Status(ctx context.Context) (s Status, err error) {
	err = c.do(ctx, http.MethodGet, "status", nil, &s, nil)
	return s, err
}

// SetPhase asks for another phase: open, fenced or done.
func (c *Client) SetPhase(ctx context.Context, phase string) (s Status, err error) {
	err = c.do(ctx, http.MethodPost, "phase/"+phase, nil, &s, nil)
	return s, err
}

// Snapshot writes the state as a snapshot file of ZooKeeper to w and returns its zxid.
func (c *Client) Snapshot(ctx context.Context, w io.Writer) (zxid int64, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://mirror/snapshot", nil)
	if err != nil {
		return 0, err
	}
	resp, err := c.send(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		return 0, errors.New(strings.TrimSpace(string(text)))
	}
	if _, err := fmt.Sscanf(resp.Header.Get("X-Zxid"), "%x", &zxid); err != nil {
		return 0, fmt.Errorf("zxid %q: %w", resp.Header.Get("X-Zxid"), err)
	}
	if _, err := io.Copy(w, resp.Body); err != nil {
		return 0, err
	}
	if resp.Trailer.Get("X-Complete") != "true" {
		return 0, errors.New("the snapshot ended early: see the server's log")
	}
	return zxid, nil
}

// send sends a request. Its errors don't name the request's URL, which is made up.
func (c *Client) send(req *http.Request) (*http.Response, error) {
	resp, err := c.http.Do(req)
	if u := (*url.Error)(nil); errors.As(err, &u) {
		err = u.Err
	}
	return resp, err
}

// do sends a command and decodes the value of its answer. step is called for the lines before.
func (c *Client) do(ctx context.Context, method, path string, body, value any, step func(string)) error {
	var b bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&b).Encode(body); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://mirror/"+path, &b)
	if err != nil {
		return err
	}
	resp, err := c.send(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	lines := json.NewDecoder(resp.Body)
	for {
		var a answer
		if err := lines.Decode(&a); err != nil {
			return fmt.Errorf("the server's answer ended early, so the result is unknown (see zkgo mirror status): %w", err)
		}
		switch {
		case a.Value != nil:
			err := json.Unmarshal(a.Value, value)
			if a.Error != "" {
				err = errors.New(a.Error)
			}
			return err
		case step != nil:
			step(a.Step)
		}
	}
}
