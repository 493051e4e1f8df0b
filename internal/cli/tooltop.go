package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/cli/diagnose"
	"github.com/zkgo/zkgo/internal/cli/overview"
	"github.com/zkgo/zkgo/internal/cli/terminal"
	"github.com/zkgo/zkgo/internal/words"
)

func topCommand() Command {
	return Command{
		Name:        "top",
		Verb:        "top [host:port...]",
		Usage:       "[-once | -n count] [-i interval] [-admin port|url] [host:port,...]",
		Short:       "show the state of the ensemble's servers, refreshed periodically",
		ListOptions: true,
		Options: []Option{
			{Name: "once", Help: "print the state once", Group: "often"},
			{Name: "n", Long: "count", Arg: "count", Help: "number of refreshes", Group: "often"},
			{Name: "i", Long: "interval", Arg: "interval", Help: "time between refreshes (default 2s)"},
			{Name: "admin", Arg: "port", Help: "query the AdminServers instead of using four-letter words: a port, e.g. 8080, or a URL"},
		},
		Offline: true, // top should also show servers that don't serve clients
		Most:    Any,
		Run:     func(ctx context.Context, c *Call) error { return topCall{c}.run(ctx) },
	}
}

// topCall is a call of top.
type topCall struct{ *Call }

func (c topCall) run(ctx context.Context) error {
	limit, err := c.whole("n", 1)
	if err != nil {
		return err
	}
	if c.Has("once") {
		limit = 1
	}
	interval := 2 * time.Second
	if c.Has("i") {
		if interval, err = time.ParseDuration(c.Value("i")); err != nil || interval < 10*time.Millisecond {
			return misuse("-i %s: want a duration of at least 10ms, e.g. 5s", c.Value("i"))
		}
	}
	w := c.watcher(ctx)
	screen := c.screen(limit)
	defer screen.end()
	ctx, stop := c.untilQuit(ctx, screen)
	defer stop()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for n := int64(1); ; n++ {
		sample := w.Look(ctx)
		if ctx.Err() != nil {
			return nil // an interrupt ends top normally
		}
		if err := c.showSample(screen, &sample); err != nil {
			return err
		}
		if n == limit {
			return answered(&sample)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// answered returns an error, for scripts, if a server doesn't serve.
func answered(s *overview.Sample) error {
	for i := range s.Servers {
		if server := &s.Servers[i]; server.Mode == "" {
			return fmt.Errorf("%s: %s", server.Address, cmp.Or(server.Error, "does not serve"))
		}
	}
	return nil
}

// watcher collects the servers: the connect string or the arguments, and the ensemble's members.
func (c topCall) watcher(ctx context.Context) *overview.Watcher {
	hosts := strings.Join(c.Args, ",")
	var config client.Config
	if hosts == "" {
		hosts, _, _ = strings.Cut(c.shell.cfg.Server, "/")
		if zk, err := c.Client(); err == nil {
			short, cancel := context.WithTimeout(ctx, 2*time.Second)
			defer cancel()
			config, _ = zk.Config(short) // if this fails, we show only the named servers
		}
	}
	w := &overview.Watcher{Admin: c.Value("admin"), Explain: c.explainer()}
	if config := c.shell.cfg.TLS; config != nil {
		dialer := &tls.Dialer{Config: config}
		w.Dial = dialer.DialContext
		w.HTTP = &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
	}
	seen := map[string]bool{}
	add := func(address string) {
		address = withPort(strings.TrimSpace(address))
		if id := identity(ctx, address); address != "" && !seen[id] {
			seen[id] = true
			w.Addresses = append(w.Addresses, address)
		}
	}
	for _, address := range append(strings.Split(hosts, ","), config.Clients...) {
		add(address)
	}
	c.addMembers(ctx, w, config, seen, add)
	return w
}

// explainer returns a function that explains why we can't show a server, in the same words
// as all commands that connect. We probe a server only once for the same cause.
func (c topCall) explainer() func(ctx context.Context, address string, err error) string {
	terms := diagnose.ClientTerms()
	if c.Has("admin") {
		terms.UseTLS, terms.NoTLS = "give its URL with https:// in -admin", "give its URL with http:// in -admin"
		terms.Closed = "is it the port of an AdminServer (admin.serverPort)?"
	}
	type failure struct{ address, cause string }
	var mu sync.Mutex
	known := map[failure]string{}
	return func(ctx context.Context, address string, err error) string {
		err = answerError(err)
		cause, isKnown := terms.Phrase(err) // unlike its text, the same for each local port
		if !isKnown {
			cause = diagnose.LastWords(err)
		}
		f := failure{address, cause}
		mu.Lock()
		text, again := known[f]
		mu.Unlock()
		if again {
			return text
		}
		if c.Has("admin") {
			address = "" // the port is another one
		}
		text = strings.TrimPrefix(diagnose.Explain(ctx, address, c.shell.cfg.TLS, terms, err).Error(), address+": ")
		mu.Lock()
		defer mu.Unlock()
		known[f] = text
		return text
	}
}

// answerError returns the failure of a connect that an unexpected answer means.
func answerError(err error) error {
	switch {
	case errors.Is(err, words.ErrNotServing):
		return diagnose.ErrNotServing
	case errors.Is(err, words.ErrTLS):
		return client.ErrTLSRequired
	}
	return err
}

// addMembers adds members without a client address in their server line, if they
// answer on their host at the port of the first named server. It counts the others as
// unknown.
func (c topCall) addMembers(ctx context.Context, w *overview.Watcher, config client.Config, seen map[string]bool, add func(string)) {
	members := memberHosts(config.Text)
	if len(w.Addresses) == 0 || len(members) == 0 {
		return
	}
	_, port, err := net.SplitHostPort(w.Addresses[0])
	if err != nil {
		return
	}
	for _, host := range members {
		if address := net.JoinHostPort(host, port); host != "" && !seen[identity(ctx, address)] && w.Answers(ctx, address) {
			add(address)
		}
	}
	w.Unknown = max(0, len(members)-len(w.Addresses))
}

// memberHosts returns the hosts in the members' server lines, "" for a line that
// can't be parsed.
func memberHosts(config string) (hosts []string) {
	for line := range strings.Lines(config) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if !strings.HasPrefix(key, "server.") {
			continue
		}
		first, _, _ := strings.Cut(value, "|")
		first, _, _ = strings.Cut(first, ";")
		var host string
		if bracket := strings.LastIndexByte(first, ']'); bracket > 0 {
			host = strings.TrimPrefix(first[:bracket], "[")
		} else {
			host, _, _ = strings.Cut(first, ":")
		}
		hosts = append(hosts, host)
	}
	return hosts
}

func withPort(address string) string {
	if _, _, err := net.SplitHostPort(address); err == nil || address == "" {
		return address
	}
	return net.JoinHostPort(strings.Trim(address, "[]"), "2181")
}

// identity returns a key that is equal for different names of the same server.
func identity(ctx context.Context, address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if found, err := net.DefaultResolver.LookupHost(ctx, host); err == nil {
		host = found[0]
		for _, ip := range found {
			host = min(host, ip)
		}
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		host = "loopback"
	}
	return net.JoinHostPort(host, port)
}

// screen is a terminal that shows one page at a time. nil means any other writer.
type screen struct {
	out  io.Writer
	size func() (width, height int)
}

// screen controls the terminal, if Out is a terminal and there is more than one sample.
func (c topCall) screen(limit int64) *screen {
	l, ok := c.Out.(*lockedWriter)
	if !ok || c.Term.Width == 0 || limit == 1 || c.JSON() {
		return nil
	}
	s := &screen{out: c.Out, size: func() (int, int) { return c.Term.Width, c.Term.Height }}
	if f, ok := l.w.(*os.File); ok {
		s.size = func() (int, int) {
			width, height, err := term.GetSize(int(f.Fd())) //nolint:gosec // a file's number is small
			if err != nil || width == 0 || height == 0 {
				return c.Term.Width, c.Term.Height
			}
			return width, height
		}
	}
	io.WriteString(s.out, "\x1b[?1049h\x1b[?25l") //nolint:errcheck // another screen, without a cursor
	return s
}

// quitKeys are the keys that end top. In raw mode they include the interrupt key.
const quitKeys = "qQ\x03"

// untilQuit returns a context that also ends when the user presses q.
func (c topCall) untilQuit(ctx context.Context, s *screen) (context.Context, func()) {
	f, ok := c.In.(*os.File)
	if s == nil || !ok || !terminal.CanAwaitKeys || !isTerminal(f) {
		return ctx, func() {}
	}
	fd := int(f.Fd()) //nolint:gosec // a file's number is small
	before, err := term.MakeRaw(fd)
	if err != nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if terminal.AwaitKey(ctx, f, quitKeys) {
			cancel()
		}
	}()
	return ctx, func() {
		cancel()
		<-done
		term.Restore(fd, before) //nolint:errcheck // nothing more to be done
	}
}

// end restores the terminal.
func (s *screen) end() {
	if s != nil {
		io.WriteString(s.out, "\x1b[?25h\x1b[?1049l") //nolint:errcheck // nothing more to be done
	}
}

// draw replaces the page.
func (s *screen) draw(text string) error {
	width, height := s.size()
	var b strings.Builder
	b.WriteString("\x1b[H")
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		if i == height-1 {
			break
		}
		if r := []rune(line); len(r) > width {
			line = string(r[:width])
		}
		b.WriteString(line + "\x1b[K\r\n")
	}
	b.WriteString("\x1b[J")
	_, err := io.WriteString(s.out, b.String())
	return err
}

func (c topCall) showSample(s *screen, sample *overview.Sample) error {
	if s != nil {
		width, _ := s.size()
		return s.draw(sampleText(sample, width) + "\nq or Ctrl-C quits\n")
	}
	text := sampleText(sample, c.Term.Width)
	return c.Emit(sample, func(w io.Writer) { io.WriteString(w, text) }) //nolint:errcheck // the next write reports it
}

// column is a column of the server table.
type column struct {
	head string
	cell func(sample *overview.Sample, i int) string
}

// columns returns the columns of the table, most important first, because we drop the last
// ones on a narrow terminal.
func columns() []column {
	of := func(cell func(s *overview.Server) string) func(*overview.Sample, int) string {
		return func(sample *overview.Sample, i int) string { return cell(&sample.Servers[i]) }
	}
	return []column{
		{"server", of(func(s *overview.Server) string { return s.Address })},
		{"mode", of(func(s *overview.Server) string { return cmp.Or(s.Mode, "down") })},
		{"zxid", of(func(s *overview.Server) string {
			if s.Zxid == nil {
				return "-"
			}
			return hexID(int64(*s.Zxid))
		})},
		{"behind tx", func(sample *overview.Sample, i int) string { return optional(sample.Lag(i)) }},
		{"req/s", of(func(s *overview.Server) string { return fraction(s.Requests) })},
		{"conns", of(func(s *overview.Server) string { return optional(s.Connections) })},
		{"avg ms", of(func(s *overview.Server) string { return fraction(s.LatencyAvg) })},
		{"max ms", of(func(s *overview.Server) string { return fraction(s.LatencyMax) })},
		{"waiting req", of(func(s *overview.Server) string { return optional(s.Outstanding) })},
		{"answer ms", of(func(s *overview.Server) string { return fraction(&s.AnswerMillis) })},
		{"watches", of(func(s *overview.Server) string { return optional(s.Watches) })},
		{"znodes", of(func(s *overview.Server) string { return optional(s.Znodes) })},
		{"ephem", of(func(s *overview.Server) string { return optional(s.Ephemerals) })},
		{"version", of(func(s *overview.Server) string { return cmp.Or(s.Version, "-") })},
	}
}

// sampleText formats a table of the servers with the columns that fit into width; 0
// means all.
func sampleText(sample *overview.Sample, width int) string {
	var b strings.Builder
	b.WriteString(headline(sample) + "\n\n")
	var hidden []string
	lines := make([]string, len(sample.Servers)+1)
	for n, col := range columns() {
		cells := []string{col.head}
		for i := range sample.Servers {
			cells = append(cells, col.cell(sample, i))
		}
		wide := 0
		for _, cell := range cells {
			wide = max(wide, len(cell))
		}
		if n > 0 && (len(hidden) > 0 || width > 0 && len(lines[0])+2+wide > width) {
			hidden = append(hidden, col.head)
			continue
		}
		for i, cell := range cells {
			if n == 0 {
				lines[i] = fmt.Sprintf("%-*s", wide, cell)
			} else {
				lines[i] += fmt.Sprintf("  %*s", wide, cell)
			}
		}
	}
	for _, line := range lines {
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	if len(hidden) > 0 {
		fmt.Fprintf(&b, "\nhidden at %d columns: %s\n", width, strings.Join(hidden, ", "))
	}
	for i := range sample.Servers {
		if s := &sample.Servers[i]; s.Error+s.Note != "" {
			fmt.Fprintf(&b, "\n%s: %s", s.Address, s.Error+s.Note)
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// headline summarizes the state of the ensemble in a line or two.
func headline(sample *overview.Sample) string {
	serving, alone := 0, false
	for i := range sample.Servers {
		if mode := sample.Servers[i].Mode; mode != "" {
			serving++
			alone = alone || mode == "standalone"
		}
	}
	address, exists := sample.Leader()
	leader := "no leader"
	switch {
	case address != "":
		leader = "leader " + address
	case exists:
		leader = "the leader is another member"
	case alone:
		leader = "standalone"
	}
	text := fmt.Sprintf("%s  %d of %s serving, %s", sample.Time.UTC().Format("2006-01-02 15:04:05Z"), serving, plural(len(sample.Servers), "server"), leader)
	if n := sample.Unknown; n > 0 {
		text += fmt.Sprintf("\n%d more %s with unknown client address: list all servers in -server or after top", n, numbered(n, "member"))
	}
	return text
}

func optional(n *int64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}

func fraction(f *float64) string {
	if f == nil {
		return "-"
	}
	return strconv.FormatFloat(*f, 'f', 1, 64)
}
