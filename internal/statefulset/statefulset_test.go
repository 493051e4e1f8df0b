package statefulset

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPodOf(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"zk-0": "zk 0", "my-zookeeper-12": "my-zookeeper 12", "zk-3.zk-headless.ns.svc.cluster.local": "zk 3",
	} {
		set, ordinal, err := PodOf(host)
		if got := fmt.Sprint(set, " ", ordinal); err != nil || got != want {
			t.Errorf("%s: %s, %v", host, got, err)
		}
	}
	for _, host := range []string{"", "zk", "zk-", "-1", "zk-x", "zk-300"} {
		if set, ordinal, err := PodOf(host); err == nil {
			t.Errorf("%q is pod %d of %q", host, ordinal, set)
		}
	}
}

// TestLines: the list has all voters, including voters that are about to be removed, and the server
// itself.
func TestLines(t *testing.T) {
	t.Parallel()
	voter := Pod{Set: "zk", Ordinal: 1, Voters: "zk", Domain: "d", Ports: "2888:3888;2181", VoterID: 1, OwnID: 1}
	observer := Pod{Set: "zk-observer", Ordinal: 0, Voters: "zk", Domain: "d", Ports: "2888:3888;2181", VoterID: 1, OwnID: 101}
	for _, c := range []struct {
		pod  Pod
		size Size
		want []string
	}{
		{voter, Size{Replicas: 2, Existing: 1}, []string{"server.1=zk-0.d:2888:3888;2181", "server.2=zk-1.d:2888:3888;2181"}},
		{voter, Size{Replicas: 1, Existing: 3}, []string{"server.1=zk-0.d:2888:3888;2181", "server.2=zk-1.d:2888:3888;2181", "server.3=zk-2.d:2888:3888;2181"}},
		{voter, Size{Replicas: 1, Existing: 1}, []string{"server.1=zk-0.d:2888:3888;2181", "server.2=zk-1.d:2888:3888;2181"}},
		{observer, Size{Replicas: 1}, []string{"server.1=zk-0.d:2888:3888;2181", "server.101=zk-observer-0.d:2888:3888:observer;2181"}},
		{voter, Size{First: 1, Replicas: 1}, []string{"server.2=zk-1.d:2888:3888;2181"}},
	} {
		if got := c.pod.Lines(c.size); !slices.Equal(got, c.want) {
			t.Errorf("%+v of %+v: %q", c.pod, c.size, got)
		}
	}
}

func TestParseSize(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]Size{
		`{"spec":{"replicas":3},"status":{"replicas":2}}`: {Replicas: 3, Existing: 2},
		`{"spec":{}}`: {Replicas: 1},
		`{"spec":{"replicas":0,"ordinals":{"start":2}}}`:                                  {First: 2},
		`{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"replicas":3}}`: {Replicas: 3, Gone: true},
	} {
		if got, err := parseSize([]byte(body)); err != nil || got != want {
			t.Errorf("%s: %+v, %v", body, got, err)
		}
	}
	for _, body := range []string{"", "[]", `{"kind":"Status"}`, `{"spec":{"replicas":"3"}}`} {
		if got, err := parseSize([]byte(body)); err == nil {
			t.Errorf("%s: %+v", body, got)
		}
	}
}

// TestAPI: errors name the missing file or field, and we read the token again for each request.
func TestAPI(t *testing.T) {
	t.Parallel()
	status, token := http.StatusOK, ""
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token = r.Header.Get("Authorization") + r.URL.Path
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"spec":{"replicas":5}}`)
	}))
	defer server.Close()
	dir := t.TempDir()
	if _, err := newAPI(server.URL, dir); err == nil || !strings.Contains(err.Error(), "automountServiceAccountToken") {
		t.Errorf("without a service account: %v", err)
	}
	for name, text := range map[string][]byte{"token": []byte("one\n"), "namespace": []byte("ns"),
		"ca.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	api, err := newAPI(server.URL, dir)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := api.Size(t.Context(), "zk"); err != nil || s.Replicas != 5 || token != "Bearer one/apis/apps/v1/namespaces/ns/statefulsets/zk" {
		t.Errorf("%+v, %v, %s", s, err, token)
	}
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("two"), 0o600); err != nil {
		t.Fatal(err)
	}
	for code, want := range map[int]string{http.StatusForbidden: "Role with the verb get", http.StatusUnauthorized: "service account", http.StatusInternalServerError: "500"} {
		status = code
		if _, err := api.Size(t.Context(), "zk"); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(token, "Bearer two/") {
			t.Errorf("%d: %v, %s", code, err, token)
		}
		if _, err := api.Size(t.Context(), "zk"); errors.Is(err, errRefused) != (code < 500) {
			t.Errorf("%d: %v", code, err)
		}
	}
	status = http.StatusNotFound
	if s, err := api.Size(t.Context(), "zk"); err != nil || !s.Gone {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestScaledAway: a server leaves only if it is certain that there are fewer replicas.
func TestScaledAway(t *testing.T) {
	t.Parallel()
	const voters, observers = "zk", "zk-observer"
	for name, c := range map[string]struct {
		set     string
		ordinal int
		sizes   map[string]Size
		err     error
		want    bool
	}{
		"restart":           {voters, 2, map[string]Size{voters: {Replicas: 3}}, nil, false},
		"fewer":             {voters, 2, map[string]Size{voters: {Replicas: 2, Existing: 3}}, nil, true},
		"later ordinals":    {voters, 2, map[string]Size{voters: {First: 2, Replicas: 1}}, nil, false},
		"zero":              {voters, 2, map[string]Size{voters: {Replicas: 0, Existing: 3}}, nil, false},
		"deleted":           {voters, 2, map[string]Size{voters: {Gone: true}}, nil, false},
		"no API":            {voters, 2, nil, errors.New("no answer"), false},
		"no observers":      {observers, 0, map[string]Size{voters: {Replicas: 3}, observers: {}}, nil, true},
		"observers deleted": {observers, 0, map[string]Size{voters: {Replicas: 3}, observers: {Gone: true}}, nil, false},
		"all stopped":       {observers, 0, map[string]Size{voters: {}, observers: {}}, nil, false},
	} {
		m := &Member{Pod: Pod{Set: c.set, Ordinal: c.ordinal, Voters: voters}, Log: slog.New(slog.DiscardHandler), pause: time.Millisecond,
			Sizes: func(_ context.Context, set string) (Size, error) { return c.sizes[set], c.err }}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		got, err := m.scaledAway(ctx)
		cancel()
		if got != c.want || (err != nil) != (c.err != nil) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// TestRefused: a server without a service account, e.g. after "helm uninstall", stops immediately
// and remains a member.
func TestRefused(t *testing.T) {
	t.Parallel()
	asked := 0
	m := &Member{Pod: Pod{Set: "zk", Voters: "zk"}, Log: slog.New(slog.DiscardHandler), pause: time.Hour,
		Sizes: func(context.Context, string) (Size, error) { asked++; return Size{}, errRefused }}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := m.Leave(ctx); !errors.Is(err, errRefused) || asked != 1 || ctx.Err() != nil {
		t.Errorf("%v, asked %d times", err, asked)
	}
}
