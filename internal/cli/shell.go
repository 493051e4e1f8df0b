package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/cli/diagnose"
	"github.com/zkgo/zkgo/internal/cli/terminal"
	"github.com/zkgo/zkgo/internal/spelling"
)

// Config is the configuration of a [Shell].
type Config struct {
	// Server is the connect string, host:port,…/chroot.
	Server string
	// Timeout is the requested session timeout; 0 means 30 seconds.
	Timeout time.Duration
	// Patience is how long a command waits for a connection; 0 means 10 seconds, or
	// the session timeout if that is shorter.
	Patience time.Duration
	// Options are additional client options: TLS, credentials, read-only.
	Options []client.Option
	// TLS is the TLS configuration in Options, for queries without a session; nil
	// means no TLS.
	TLS *tls.Config
	// In, Out and Err are the streams. At most one goroutine at a time writes to each
	// of Out and Err.
	In       io.Reader
	Out, Err io.Writer
	// Term describes the terminal behind Out.
	Term terminal.Term
	// JSON writes data as JSON, one document per line.
	JSON bool
	// Quiet suppresses zkCli.sh's messages about connections.
	Quiet bool
	// Prompt means that a user reads the connection's events, at a prompt. Otherwise they
	// are printed to Err, because Out is for data.
	Prompt bool
	// Version is the output of the command version.
	Version string
}

// Shell runs commands in one session. Its methods are not safe for concurrent use.
// The caller must call Close.
type Shell struct {
	cfg     Config
	zk      *client.Client // with the connect string's chroot; nil without a session
	rootZK  *client.Client // without the chroot
	chroot  string
	watches []watch
	events  *events
	states  sync.WaitGroup    // waits for the goroutine that reports session states
	trouble *diagnose.Trouble // finds out why there is no connection; nil without a session
	history []string
	reading bool                              // commands are read from In
	greeted chan struct{}                     // closed after the first connection state was reported
	above   atomic.Pointer[func(text string)] // prints above the line being edited
}

var errNotConnected = &Exit{Code: 1, Message: "Not connected"}

// New returns a shell that is not connected yet.
func New(cfg Config) *Shell {
	if cfg.Timeout == 0 {
		cfg.Timeout = client.DefaultSessionTimeout
	}
	if cfg.Patience == 0 {
		cfg.Patience = min(cfg.Timeout, 10*time.Second)
	}
	cfg.Out, cfg.Err = &lockedWriter{w: cfg.Out}, &lockedWriter{w: cfg.Err}
	s := &Shell{cfg: cfg}
	s.events = newEvents(s.printEvent)
	return s
}

// lockedWriter is a writer that is safe for concurrent use. It keeps the first error: most
// commands print line by line and don't look.
type lockedWriter struct {
	mu  sync.Mutex
	w   io.Writer
	err error
}

// Write implements io.Writer.
func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.w.Write(b)
	if l.err == nil {
		l.err = err
	}
	return n, err
}

// written returns the error of a command, or else of its output: a command has failed if its output
// is lost, e.g. on a full disk.
func (s *Shell) written(err error) error {
	out, ok := s.cfg.Out.(*lockedWriter)
	if err != nil || !ok {
		return err
	}
	out.mu.Lock()
	defer out.mu.Unlock()
	return out.err
}

// under returns the writer inside a lockedWriter, which may be a file.
func under(w io.Writer) io.Writer {
	if l, ok := w.(*lockedWriter); ok {
		return l.w
	}
	return w
}

// Connect starts a session with the servers of a connect string, and closes the
// previous session. It doesn't wait for the connection; commands do.
func (s *Shell) Connect(server string) error {
	closed := s.disconnect()
	hosts, chroot, _ := strings.Cut(server, "/")
	if scheme, _, found := strings.Cut(server, "://"); found {
		return misuse("-server %s: want host:port,host:port/chroot, not a URL: remove %q", server, scheme+"://")
	}
	s.cfg.Server, s.chroot = server, ""
	if chroot != "" {
		s.chroot = "/" + chroot
		if err := checkPath(s.chroot); err != nil {
			return err
		}
	}
	trouble := diagnose.New(s.cfg.TLS, s.sayTrouble)
	options := append(slices.Clone(s.cfg.Options), client.WithLazy(), client.WithoutNewSession(),
		client.WithSessionTimeout(s.cfg.Timeout), client.WithEvents(s.happened), trouble.Option())
	zk, err := client.Connect(context.Background(), hosts, options...)
	if err != nil {
		return misuse("-server %s: %v", server, err)
	}
	trouble.Begin(zk)
	s.rootZK, s.zk, s.trouble = zk, zk, trouble
	if s.chroot != "" {
		s.zk = zk.Namespace(s.chroot)
	}
	states, greeted := zk.Subscribe(), make(chan struct{})
	s.greeted = greeted
	s.states.Go(func() {
		first := true
		for change := range states.C() {
			name := stateName(change.State)
			if name == "" {
				continue
			}
			s.events.tell(event{State: name, Type: "None", Zxid: -1})
			if first {
				close(greeted)
				first = false
			}
		}
	})
	return closed
}

// sayTrouble prints why there is no connection, in order with the events.
func (s *Shell) sayTrouble(causes []string) {
	s.events.note("No connection yet, trying again:\n  " + strings.Join(causes, "\n  ") + "\n")
}

// happened handles a znode event on the client's goroutine.
func (s *Shell) happened(e client.Event) {
	path := strings.TrimPrefix(e.Path, s.chroot)
	if path == "" {
		path = "/"
	}
	s.events.tell(event{State: "SyncConnected", Type: e.Type.String(), Path: path, Zxid: e.Zxid})
}

// stateName returns the name that ZooKeeper's Java client gives to a new state, or ""
// for states that it doesn't report.
func stateName(state client.State) string {
	switch state {
	case client.StateConnected, client.StateReconnected:
		return "SyncConnected"
	case client.StateSuspended:
		return "Disconnected"
	case client.StateLost:
		return "Expired"
	case client.StateReadOnly:
		return "ConnectedReadOnly"
	case client.StateAuthFailed:
		return "AuthFailed"
	case client.StateClosed:
		return "Closed"
	}
	return ""
}

// javaState returns the name of the connection's state in ZooKeeper's Java client.
func (s *Shell) javaState() string {
	if s.zk == nil {
		return "CLOSED"
	}
	switch s.zk.State() {
	case client.StateConnected, client.StateReconnected:
		return "CONNECTED"
	case client.StateReadOnly:
		return "CONNECTEDREADONLY"
	case client.StateLost, client.StateClosed:
		return "CLOSED"
	case client.StateAuthFailed:
		return "AUTH_FAILED"
	}
	return "CONNECTING"
}

// Await waits for the connection. After the session timeout it returns an error that
// says why there is none.
func (s *Shell) Await(ctx context.Context) error {
	zk, err := s.client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.Timeout, diagnose.ErrNoConnection)
	defer cancel()
	if err := zk.Await(ctx); err != nil {
		if errors.Is(err, diagnose.ErrNoConnection) {
			err = s.trouble.GiveUp(zk, s.cfg.Timeout)
		}
		return &Exit{Code: 1, Message: keeperCode("ConnectionLoss", "") + ": " + err.Error(), Err: err}
	}
	return nil
}

// Run runs one command with its arguments.
func (s *Shell) Run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return refuse("No command entered")
	}
	command, ok := Find(args[0])
	if !ok {
		return notFound(args[0])
	}
	call, err := s.parse(&command, args[1:])
	if errors.Is(err, errHelp) {
		_, err := io.WriteString(s.cfg.Out, command.help())
		return err
	}
	if !command.Offline && (err == nil || s.greeted != nil) { // without any connection yet, we only report the command line
		if _, err := s.client(); err != nil {
			return err
		}
		var stop context.CancelFunc
		ctx, stop = s.guard(ctx)
		defer stop()
	}
	if err != nil {
		return err
	}
	if !command.Offline {
		// We print messages about the connection before the command's output.
		select {
		case <-s.greeted:
			s.events.flush()
		case <-ctx.Done(): // the command reports the reason
		}
	}
	err = command.Run(ctx, call)
	if errors.Is(err, client.ErrAuthFailed) {
		_ = s.disconnect() // we must not use a session without its identity
	}
	return err
}

// notFound returns the error for an unknown command.
func notFound(name string) error {
	var names []string
	for _, c := range Commands() {
		names = append(names, c.Name)
	}
	hint := "See: help"
	if near := spelling.Similar(name, names); near != "" {
		hint = "Did you mean " + near + "? " + hint
	}
	return misuse("Command not found: %s. %s", name, hint)
}

// parse returns the call of a command, or an error if its arguments are wrong.
func (s *Shell) parse(command *Command, args []string) (*Call, error) {
	parsed, err := parseOptions(command, args)
	if err != nil {
		return nil, err
	}
	call := &Call{
		Args: parsed.args, In: s.cfg.In, Out: s.cfg.Out, Err: s.cfg.Err, Term: s.cfg.Term,
		command: command, options: parsed.found, literal: parsed.literal, shell: s,
	}
	if len(call.Args) < command.Least {
		return nil, call.UsageError()
	}
	if command.Most != Any && len(call.Args) > command.Most {
		return nil, call.tooMany(call.Args[command.Most])
	}
	return call, nil
}

// NeedsConnection reports whether a command line needs a connection: whether it is valid, and more
// than a request for help.
func (s *Shell) NeedsConnection(args []string) bool {
	if len(args) == 0 {
		return true // it reads commands
	}
	command, ok := Find(args[0])
	if !ok || command.Name == "help" || command.Name == "version" {
		return false
	}
	_, err := s.parse(&command, args[1:])
	return err == nil
}

// guard returns a context that ends when the command has been without a connection
// for too long.
func (s *Shell) guard(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := s.oversee(ctx, s.rootZK, s.trouble, cancel)
	return ctx, func() {
		cancel(nil)
		stop()
	}
}

// oversee calls giveUp when zk has been without a connection for too long, until stop
// is called or ctx ends.
func (s *Shell) oversee(ctx context.Context, zk *client.Client, trouble *diagnose.Trouble, giveUp context.CancelCauseFunc) (stop func()) {
	states := zk.Subscribe()
	var wg sync.WaitGroup
	wg.Go(func() {
		late := time.AfterFunc(s.cfg.Patience, func() { giveUp(trouble.GiveUp(zk, s.cfg.Patience)) })
		defer late.Stop()
		for {
			select {
			case change, ok := <-states.C():
				if !ok {
					return
				}
				if late.Stop(); !change.State.Connected() {
					late.Reset(s.cfg.Patience)
				}
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		states.Close()
		wg.Wait()
	}
}

// client returns the connection.
func (s *Shell) client() (*client.Client, error) {
	if s.zk == nil {
		return nil, errNotConnected
	}
	switch s.zk.State() {
	case client.StateLost, client.StateClosed:
		return nil, errNotConnected
	case client.StateAuthFailed:
		return nil, s.notBelieved()
	}
	return s.zk, nil
}

// notBelieved returns an error that says why the servers reject the client's
// identity.
func (s *Shell) notBelieved() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // there is nothing to wait for
	err := s.zk.Await(ctx)
	if err == nil {
		return errNotConnected // it is connected to another server now
	}
	return &Exit{Code: 1, Message: keeperCode("AuthFailed", "") + ": " + s.cfg.Server + ": " + err.Error(), Err: client.ErrAuthFailed}
}

// root returns the connection without the chroot.
func (s *Shell) root() (*client.Client, error) {
	_, err := s.client()
	return s.rootZK, err
}

// disconnect closes the session.
func (s *Shell) disconnect() error {
	if s.zk == nil {
		return nil
	}
	s.trouble.End()
	err := s.zk.Close()
	s.states.Wait()
	s.zk, s.rootZK, s.watches, s.trouble = nil, nil, nil, nil
	if err != nil {
		return refuse(fmt.Sprintf("closing the session with %s: %v", s.cfg.Server, err))
	}
	return nil
}

// Close closes the session and the shell. It prints nothing unless that fails.
func (s *Shell) Close() error {
	s.events.flush()
	s.events.setPrinting(false)
	err := s.disconnect()
	s.events.close()
	return err
}

// ignoreNoNode returns nil for the error of a missing znode.
func ignoreNoNode(err error) error {
	if errors.Is(err, client.ErrNoNode) {
		return nil
	}
	return err
}
