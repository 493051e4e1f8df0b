package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Source is a running server to back up.
type Source struct {
	// URL is the URL of its AdminServer, with or without the path of the commands:
	// http://host:8080, https://host:8080/commands.
	URL string
	// Auth authenticates the caller as in ZooKeeper: scheme, space, and the scheme's
	// credentials. If it's empty, only a certificate can identify the caller.
	Auth string
	// Client sends the requests; nil means a client without a timeout. The caller
	// configures its TLS.
	Client *http.Client
	// Retry is the number of retries if the server has just served another request.
	// Pause is the wait before a retry if the server doesn't specify one.
	Retry int
	Pause time.Duration
}

// Result describes the backup that was written.
type Result struct {
	Path    string  `json:"path"`
	Header  *Header `json:"header"`
	Bytes   int64   `json:"bytes"` // of the snapshot, uncompressed
	Znodes  int     `json:"znodes,omitempty"`
	Session int     `json:"sessions,omitempty"`
	Checked bool    `json:"checked"` // loaded and compared with its digest
}

// Take writes a backup of a running server to a new file. If verify is true, it reads and loads the
// file before it gives the file its final name.
func Take(ctx context.Context, src Source, path, created string, verify bool) (Result, error) {
	res := Result{Path: path}
	var end End
	write := func(w io.Writer) (err error) {
		res.Header, end, err = Stream(ctx, src, w, created)
		return err
	}
	accept := func(tmp string) error {
		if !verify {
			return nil
		}
		c, err := Load(tmp)
		if err != nil {
			return fmt.Errorf("the snapshot from %s cannot be restored: %w", src.URL, err)
		}
		res.Znodes, res.Session, res.Checked = c.Tree.NodeCount()-1, c.Sessions.Len(), c.Verified
		return nil
	}
	err := create(path, write, accept)
	res.Bytes = end.Bytes
	return res, err
}

// Stream writes a backup of a running server to w.
func Stream(ctx context.Context, src Source, w io.Writer, created string) (*Header, End, error) {
	h := &Header{Taken: time.Now().UTC().Truncate(time.Millisecond), Source: src.commands(), Created: created}
	src.describe(ctx, h)
	resp, err := src.snapshot(ctx)
	if err != nil {
		return nil, End{}, err
	}
	defer resp.Body.Close()
	zxid, size := first(resp.Header, "last_zxid"), first(resp.Header, "snapshot_size")
	if h.Zxid = zxid; zxid == "" {
		return nil, End{}, fmt.Errorf("%s: the answer has no header last_zxid: not an AdminServer of ZooKeeper 3.9 or zkgo", src.commands())
	}
	end, err := Write(w, *h, resp.Body)
	if err != nil {
		return nil, end, fmt.Errorf("%s: %w", src.commands(), err)
	}
	if size != "" && size != strconv.FormatInt(end.Bytes, 10) {
		return nil, end, fmt.Errorf("%s: %d bytes came of %s", src.commands(), end.Bytes, size)
	}
	return h, end, nil
}

// first returns the value of a header. We ignore case, because servers may write the name
// in lower case.
func first(h http.Header, name string) string {
	for key, values := range h {
		if strings.EqualFold(key, name) && len(values) > 0 {
			return values[0]
		}
	}
	return ""
}

// commands returns the base URL of the commands.
func (s *Source) commands() string {
	url := strings.TrimSuffix(s.URL, "/")
	if !strings.Contains(url, "://") {
		url = "http://" + url
	}
	if _, rest, _ := strings.Cut(url, "://"); !strings.Contains(rest, "/") {
		url += "/commands"
	}
	return url
}

func (s *Source) client() *http.Client {
	if s.Client != nil {
		return s.Client
	}
	return http.DefaultClient
}

func (s *Source) get(ctx context.Context, command string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.commands()+"/"+command, nil)
	if err != nil {
		return nil, err
	}
	auth := s.Auth
	if auth == "" {
		auth = "ip -"
	}
	req.Header.Set("Authorization", auth)
	return s.client().Do(req)
}

// describe records the server's version and state if the server reports them.
func (s *Source) describe(ctx context.Context, h *Header) {
	resp, err := s.get(ctx, "server_stats")
	if err != nil {
		return
	}
	defer resp.Body.Close()
	var answer struct {
		Version string `json:"version"`
		Stats   struct {
			State string `json:"server_state"`
		} `json:"server_stats"`
	}
	if json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&answer) == nil {
		h.Server, h.State = answer.Version, answer.Stats.State
	}
}

// snapshot requests the snapshot. We retry while the server rejects the request because of
// a recent one.
func (s *Source) snapshot(ctx context.Context) (*http.Response, error) {
	for try := 0; ; try++ {
		resp, err := s.get(ctx, "snapshot?streaming=true")
		if err != nil {
			return nil, err
		}
		if resp.StatusCode == http.StatusOK && strings.HasPrefix(resp.Header.Get("Content-Type"), "application/octet-stream") {
			return resp, nil
		}
		err = s.refusal(resp)
		if resp.StatusCode != http.StatusTooManyRequests || try >= s.Retry {
			return nil, err
		}
		pause := s.Pause
		if after, bad := strconv.Atoi(resp.Header.Get("Retry-After")); bad == nil {
			pause = time.Duration(after) * time.Second
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, errors.Join(err, ctx.Err())
		}
	}
}

// refusal returns the error in a response without a snapshot.
func (s *Source) refusal(resp *http.Response) error {
	defer resp.Body.Close()
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	var answer struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(b, &answer) != nil || answer.Error == "" {
		answer.Error = "no reason given"
	}
	hint := ""
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		if hint = ": authenticate with --auth, e.g. --auth digest:super:PASSWORD"; s.Auth != "" {
			hint = ": the identity of --auth lacks the permission, or its password is wrong"
		}
	case http.StatusNotFound:
		hint = ": is this the AdminServer?"
	case http.StatusBadRequest:
		if strings.Contains(string(b), "HTTPS") { // "Client sent an HTTP request to an HTTPS server."
			hint = ": the port expects TLS: use https:// in the URL"
		}
	}
	return fmt.Errorf("%s/snapshot: refused with %s: %s%s", s.commands(), resp.Status, answer.Error, hint)
}
