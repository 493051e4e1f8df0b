package cli

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zkgo/zkgo/server/zktest"
)

func TestCandidates(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	zs.Seed(map[string]string{
		"/app": "", "/app/one": "", "/app/only": "", "/apple": "",
		"/names": "", "/names/with space": "", "/names/two words": "", "/names/two weeks": "", "/names/its \"own\" name": "",
	})
	b := newTold(t, zs)
	for line, want := range map[string][]string{
		"getA":              {"getAcl", "getAllChildrenNumber"},
		"help setq":         {"setquota"},
		"get /ap":           {"/app", "/apple"},
		"get -s /app/":      {"/app/one", "/app/only"},
		"get -":             {"-s", "-w", "-b", "-x"},
		"get /nothing/here": nil,
		"get x":             nil,
	} {
		var got []string
		for _, c := range b.shell.candidates(t.Context(), line) {
			got = append(got, c.Value)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	var listed strings.Builder
	for line, want := range map[string]string{
		"get /names/wi": `get "/names/with space"`, `get "/names/wi`: `get "/names/with space"`, `get '/names/wi`: `get '/names/with space'`,
		"get /names/t": `get "/names/two w`, `get "/names/two wo`: `get "/names/two words"`,
		"get /names/i": `get '/names/its "own" name'`, `set "/names/with space" "x y" /app/o`: `set "/names/with space" "x y" /app/on`,
		"get /app/o": "get /app/on", "get /zoo": "get /zookeeper", "whoa": "whoami ", "get /x": "get /x",
	} {
		if got, at, _ := b.shell.complete(t.Context(), &listed, line, len(line)); got != want || at != len(want) {
			t.Errorf("%s: %q at %d, want %q", line, got, at, want)
		}
	}
	if listed.Len() > 0 {
		t.Errorf("listed: %s", listed.String())
	}
	b.shell.complete(t.Context(), &listed, "get /app", len("get /app"))
	if text := listed.String(); !strings.Contains(text, "app") || !strings.Contains(text, "apple") {
		t.Errorf("listed: %q", text)
	}
}

// typed collects a terminal's output and lets tests wait for it.
type typed struct {
	mu   sync.Mutex
	text strings.Builder
	more sync.Cond
}

func (s *typed) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.more.Broadcast()
	return s.text.Write(b)
}

// await waits until text has been printed n times.
func (s *typed) await(t *testing.T, text string, n int) {
	t.Helper()
	late := time.AfterFunc(time.Minute, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.more.Broadcast()
	})
	defer late.Stop()
	began := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for strings.Count(s.text.String(), text) < n {
		if time.Since(began) >= time.Minute {
			t.Fatalf("no %q on the terminal:\n%s", text, s.text.String())
		}
		s.more.Wait()
	}
}

// TestInteractive types at a prompt. It covers keys, completion, an event while a
// line is being edited, and the history of the next session.
func TestInteractive(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	zs.Seed(map[string]string{"/watched": ""})
	history := filepath.Join(t.TempDir(), "history")
	prompt := Prompt{
		History: history, Raw: func() (func(), error) { return func() {}, nil },
		Size:          func() (int, int) { return 80, 24 },
		Interruptible: func(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} },
	}
	term := &typed{}
	term.more.L = &term.mu
	in, keyboard := io.Pipe()
	b := newTold(t, zs, func(c *Config) { c.In, c.Out, c.Err = in, term, term })
	ended := make(chan int)
	go func() {
		code, err := b.shell.Interactive(t.Context(), prompt)
		if err != nil {
			t.Error(err)
		}
		ended <- code
	}()
	keys := func(text string) {
		if _, err := keyboard.Write([]byte(text)); err != nil {
			t.Error(err)
		}
	}
	term.await(t, "[zk: server(CONNECTED) 0] ", 1)
	keys("addWa\t/watched\r")
	term.await(t, "CONNECTED) 1] ", 1)
	keys("ls /half")
	if _, err := zs.Client(t).Set(t.Context(), "/watched", []byte("x"), -1); err != nil {
		t.Fatal(err)
	}
	term.await(t, "type:NodeDataChanged path:/watched", 1)
	keys("\x03get /wat\t\r") // the interrupt key clears the line
	term.await(t, "x\n", 1)
	keys("addauth digest a:secret\r")
	keys("quit\r")
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d", code)
	}
	text, err := os.ReadFile(history)
	if want := "addWatch /watched\nget /watched\nquit\n"; err != nil || string(text) != want {
		t.Errorf("history: %v\n%s", err, text)
	}
	if info, err := os.Stat(history); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others can read the history: %v, %v", info.Mode(), err)
	}
}
