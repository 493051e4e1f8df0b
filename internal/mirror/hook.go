package mirror

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Hook is a command of the operator for one old server. A command that fences servers should
// close their ports for clients and let them run, because Last needs the old leader and a quorum
// to prove the last transaction, e.g.
//
//	ssh {host} iptables -I INPUT -p tcp --dport {port} -j REJECT --reject-with tcp-reset
//
// If it stops the servers, e.g. with systemctl stop zookeeper, CheckLogs replaces Last.
type Hook struct {
	// Command is a command line for the shell. We replace {host}, {port} and {id} with the
	// server's, and set HOST, PORT and ID in the command's environment. The port is the client
	// port.
	Command string
	// Timeout limits it; default 30 s.
	Timeout time.Duration
}

// plainHost matches host names and addresses that mean nothing to a shell.
var plainHost = regexp.MustCompile(`^[A-Za-z0-9._:%-]+$`)

// mostOutput limits the output of a command in an error, in bytes.
const mostOutput = 4 << 10

// Run runs the command for each server, all at once. The error has the output of each command
// that failed.
func (h Hook) Run(ctx context.Context, servers []OldServer) error {
	_, errs := h.outputs(ctx, servers)
	return errors.Join(errs...)
}

// outputs runs the command for each server, and returns the end of each output.
func (h Hook) outputs(ctx context.Context, servers []OldServer) (texts []string, errs []error) {
	texts, errs = make([]string, len(servers)), make([]error, len(servers))
	var done sync.WaitGroup
	for i := range servers {
		done.Go(func() { texts[i], errs[i] = h.run(ctx, &servers[i]) })
	}
	done.Wait()
	return texts, errs
}

func (h Hook) run(ctx context.Context, s *OldServer) (text string, err error) {
	host, port, id := s.Host(), "", ""
	if addr := s.Client; addr != "" {
		_, port, _ = net.SplitHostPort(addr)
	} else if s.Secure != "" {
		_, port, _ = net.SplitHostPort(s.Secure)
	}
	if s.ID >= 0 {
		id = strconv.FormatInt(s.ID, 10)
	}
	switch {
	case !plainHost.MatchString(host):
		return "", fmt.Errorf("mirror: the command does not run for %s: its host name %q is not one", s, host)
	case id == "" && strings.Contains(h.Command, "{id}"):
		return "", fmt.Errorf("mirror: the command needs the id of %s, which is unknown: use {host}, or give the old zoo.cfg as --from", s)
	case port == "" && strings.Contains(h.Command, "{port}"):
		return "", fmt.Errorf("mirror: the command needs the client port of %s, which is unknown: name it with --clients", s)
	}
	limit := h.Timeout
	if limit <= 0 {
		limit = 30 * time.Second
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it ran longer than %v", limit))
	defer cancel()
	line := strings.NewReplacer("{host}", host, "{port}", port, "{id}", id).Replace(h.Command)
	cmd := shell(ctx, line)
	cmd.Env = append(os.Environ(), "HOST="+host, "PORT="+port, "ID="+id)
	var out tail
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second // a child of the shell may keep the pipe open
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		text := out.text()
		if text != "" {
			text = "\n" + text
		}
		return "", fmt.Errorf("mirror: the command for %s, %s: %w%s", s, line, err, text)
	}
	return out.text(), nil
}

// shell returns the command that runs a line in the system's shell.
func shell(ctx context.Context, line string) *exec.Cmd {
	if runtime.GOOS == "windows" {
		return exec.CommandContext(ctx, "cmd", "/C", line)
	}
	return exec.CommandContext(ctx, "/bin/sh", "-c", line)
}

// tail keeps the last bytes written to it.
type tail struct{ buf []byte }

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.buf = append(t.buf, b[max(0, len(b)-mostOutput):]...)
	t.buf = t.buf[max(0, len(t.buf)-mostOutput):]
	return len(b), nil
}

func (t *tail) text() string { return string(bytes.TrimSpace(t.buf)) }
