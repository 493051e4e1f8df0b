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
)

// Config says what a [Shell] works with.
type Config struct {
	// Server is the connect string, host:port,…/chroot.
	Server string
	// Timeout is the session timeout that is asked for; 0 for 30 seconds.
	Timeout time.Duration
	// Patience is how long a command waits for a connection; 0 for 10 seconds, or
	// the session timeout if that is less.
	Patience time.Duration
	// Options are more options of the client: TLS, credentials, read-only.
	Options []client.Option
	// TLS is what Options say of TLS, for what is asked without a session; nil is
	// without TLS.
	TLS *tls.Config
	// In, Out and Err are the streams. Out and Err are each written to by one
	// goroutine at a time.
	In       io.Reader
	Out, Err io.Writer
	// Term is what Out is.
	Term Term
	// JSON writes data as JSON, a document a line.
	JSON bool
	// Quiet leaves out what zkCli.sh says about connections.
	Quiet bool
	// Version is what the command version prints.
	Version string
}

// Shell runs commands in one session. Its methods are not safe for concurrent use.
// It has to be closed.
type Shell struct {
	cfg     Config
	zk      *client.Client // as the connect string says; nil without a session
	rootZK  *client.Client // without the chroot
	chroot  string
	watches []watch
	events  *events
	states  sync.WaitGroup // of the goroutine that tells of the session's states
	trouble *trouble       // why the session has no connection; nil without a session
	history []string
	reading bool                              // commands come from In
	greeted chan struct{}                     // closed when the first state of the connection was told
	above   atomic.Pointer[func(text string)] // prints above the line that is being edited
}

var (
	errNotConnected = &Exit{Code: 1, Message: "Not connected"}
	// errNoConnection is why a command ends that has waited too long.
	errNoConnection = errors.New("no connection for too long")
)

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

// lockedWriter is a writer for several goroutines.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

// Write implements io.Writer.
func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// under returns the writer inside a lockedWriter: a file, perhaps.
func under(w io.Writer) io.Writer {
	if l, ok := w.(*lockedWriter); ok {
		return l.w
	}
	return w
}

// Connect begins a session with the servers of a connect string, and ends the one
// that there was. It does not wait for the connection: commands do.
func (s *Shell) Connect(server string) error {
	closed := s.disconnect()
	hosts, chroot, _ := strings.Cut(server, "/")
	if scheme, _, found := strings.Cut(server, "://"); found {
		return refuse(fmt.Sprintf("-server %s: want host:port,host:port/chroot, and no URL: leave %q out", server, scheme+"://"))
	}
	s.cfg.Server, s.chroot = server, ""
	if chroot != "" {
		s.chroot = "/" + chroot
		if err := checkPath(s.chroot); err != nil {
			return err
		}
	}
	trouble := newTrouble(s.cfg.TLS, s.sayTrouble)
	options := append(slices.Clone(s.cfg.Options), client.WithLazy(), client.WithoutNewSession(),
		client.WithSessionTimeout(s.cfg.Timeout), client.WithEvents(s.happened), trouble.option())
	zk, err := client.Connect(context.Background(), hosts, options...)
	if err != nil {
		return refuse(fmt.Sprintf("-server %s: %v", server, err))
	}
	trouble.begin(zk)
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

// sayTrouble prints why there is no connection, in its order among the events.
func (s *Shell) sayTrouble(causes []string) {
	s.events.note("No connection yet, trying again:\n  " + strings.Join(causes, "\n  ") + "\n")
}

// happened takes an event of a znode, on the client's goroutine.
func (s *Shell) happened(e client.Event) {
	path := strings.TrimPrefix(e.Path, s.chroot)
	if path == "" {
		path = "/"
	}
	s.events.tell(event{State: "SyncConnected", Type: e.Type.String(), Path: path, Zxid: e.Zxid})
}

// stateName is what ZooKeeper's Java client calls a new state; "" for what it does
// not tell of.
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

// javaState is what ZooKeeper's Java client calls the state of the connection.
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

// Await returns when the connection is there, or says why it is not after the
// session timeout.
func (s *Shell) Await(ctx context.Context) error {
	zk, err := s.client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.Timeout, errNoConnection)
	defer cancel()
	if err := zk.Await(ctx); err != nil {
		if errors.Is(err, errNoConnection) {
			err = s.trouble.giveUp(zk, s.cfg.Timeout)
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
	parsed, err := parseOptions(&command, args[1:])
	if errors.Is(err, errHelp) {
		_, err := io.WriteString(s.cfg.Out, command.help())
		return err
	}
	if !command.Offline {
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
	call := &Call{
		Args: parsed.args, In: s.cfg.In, Out: s.cfg.Out, Err: s.cfg.Err, Term: s.cfg.Term,
		command: &command, options: parsed.found, literal: parsed.literal, shell: s,
	}
	if len(call.Args) < command.Least {
		return call.UsageError()
	}
	if command.Most != Any && len(call.Args) > command.Most {
		return call.tooMany(call.Args[command.Most])
	}
	if !command.Offline {
		// What is told of the connection stands in front of what the command prints.
		select {
		case <-s.greeted:
			s.events.flush()
		case <-ctx.Done(): // the command finds out why
		}
	}
	err = command.Run(ctx, call)
	if errors.Is(err, client.ErrAuthFailed) {
		_ = s.disconnect() // whoever lacks an identity must not go on as somebody else
	}
	return err
}

// notFound is the answer to an unknown command.
func notFound(name string) error {
	var names []string
	for _, c := range Commands() {
		names = append(names, c.Name)
	}
	hint := "See: help"
	if near := Similar(name, names); near != "" {
		hint = "Did you mean " + near + "? " + hint
	}
	return misuse("Command not found: %s. %s", name, hint)
}

// WantsHelp reports whether a command's arguments only ask for help, for which no
// connection is needed.
func WantsHelp(args []string) bool {
	if len(args) == 0 {
		return false
	}
	command, ok := Find(args[0])
	if !ok {
		return true // it is refused
	}
	_, err := parseOptions(&command, args[1:])
	return errors.Is(err, errHelp) || command.Name == "help" || command.Name == "version"
}

// guard ends the context of a command that has been without a connection for too
// long.
func (s *Shell) guard(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := s.oversee(ctx, s.rootZK, s.trouble, cancel)
	return ctx, func() {
		cancel(nil)
		stop()
	}
}

// oversee gives up when zk has been without a connection for too long, until it is
// stopped or ctx ends.
func (s *Shell) oversee(ctx context.Context, zk *client.Client, trouble *trouble, giveUp context.CancelCauseFunc) (stop func()) {
	states := zk.Subscribe()
	var wg sync.WaitGroup
	wg.Go(func() {
		late := time.AfterFunc(s.cfg.Patience, func() { giveUp(trouble.giveUp(zk, s.cfg.Patience)) })
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

// notBelieved says why the servers refuse who this is.
func (s *Shell) notBelieved() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // there is nothing to wait for
	err := s.zk.Await(ctx)
	if err == nil {
		return errNotConnected // it is at another server by now
	}
	return &Exit{Code: 1, Message: keeperCode("AuthFailed", "") + ": " + s.cfg.Server + ": " + err.Error(), Err: client.ErrAuthFailed}
}

// root returns the connection without the chroot.
func (s *Shell) root() (*client.Client, error) {
	_, err := s.client()
	return s.rootZK, err
}

// disconnect ends the session.
func (s *Shell) disconnect() error {
	if s.zk == nil {
		return nil
	}
	s.trouble.end()
	err := s.zk.Close()
	s.states.Wait()
	s.zk, s.rootZK, s.watches, s.trouble = nil, nil, nil, nil
	if err != nil {
		return refuse(fmt.Sprintf("closing the session with %s: %v", s.cfg.Server, err))
	}
	return nil
}

// Close ends the session and the shell, without a word unless that fails.
func (s *Shell) Close() error {
	s.events.flush()
	s.events.setPrinting(false)
	err := s.disconnect()
	s.events.close()
	return err
}

// ignoreNoNode takes a znode that is not there for no error.
func ignoreNoNode(err error) error {
	if errors.Is(err, client.ErrNoNode) {
		return nil
	}
	return err
}
