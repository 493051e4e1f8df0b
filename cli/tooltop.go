package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"

	"github.com/zkgo/zkgo/cli/overview"
)

func topCommand() Command {
	return Command{
		Name:        "top",
		Usage:       "[-once | -n count] [-i interval] [-admin port|url] [host:port,...]",
		Short:       "show how the servers of the ensemble are, again and again",
		ListOptions: true,
		Options: []Option{
			{Name: "once", Help: "look once", Group: "often"},
			{Name: "n", Arg: "count", Help: "look so many times", Group: "often"},
			{Name: "i", Arg: "interval", Help: "time between looks, 2s without it"},
			{Name: "admin", Arg: "port", Help: "ask the AdminServers instead of using four-letter words: a port, as 8080, or a URL"},
		},
		Offline: true, // servers that serve nobody are what one wants to see
		Most:    Any,
		Run:     runTop,
	}
}

func runTop(ctx context.Context, c *Call) error {
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
			return misuse("-i %s: a duration from 10ms is wanted, as 5s", c.Value("i"))
		}
	}
	w := c.watcher(ctx)
	screen := c.screen(limit)
	defer screen.end()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for n := int64(1); ; n++ {
		sample := w.Look(ctx)
		if ctx.Err() != nil {
			return nil // an interrupt is how it ends
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

// answered is the verdict for a script: an error if a server does not serve.
func answered(s *overview.Sample) error {
	for i := range s.Servers {
		if server := &s.Servers[i]; server.Mode == "" {
			return fmt.Errorf("%s: %s", server.Address, cmp.Or(server.Error, "it does not serve"))
		}
	}
	return nil
}

// watcher finds the servers: those of the connect string, or of the arguments, and
// those that the ensemble says it has.
func (c *Call) watcher(ctx context.Context) *overview.Watcher {
	hosts := strings.Join(c.Args, ",")
	known := []string(nil)
	if hosts == "" {
		hosts, _, _ = strings.Cut(c.shell.cfg.Server, "/")
		if zk, err := c.Client(); err == nil {
			short, cancel := context.WithTimeout(ctx, 2*time.Second)
			defer cancel()
			if config, err := zk.Config(short); err == nil {
				known = config.Clients
			}
		}
	}
	w := &overview.Watcher{Admin: c.Value("admin")}
	seen := map[string]bool{}
	for _, address := range append(strings.Split(hosts, ","), known...) {
		address = withPort(strings.TrimSpace(address))
		if id := identity(ctx, address); address != "" && !seen[id] {
			seen[id] = true
			w.Addresses = append(w.Addresses, address)
		}
	}
	if config := c.shell.cfg.TLS; config != nil {
		dialer := &tls.Dialer{Config: config}
		w.Dial = dialer.DialContext
		w.HTTP = &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
	}
	return w
}

func withPort(address string) string {
	if _, _, err := net.SplitHostPort(address); err == nil || address == "" {
		return address
	}
	return net.JoinHostPort(strings.Trim(address, "[]"), "2181")
}

// identity is by what the same server is known under another name.
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

// screen is a terminal that shows one thing at a time; nil is any other writer.
type screen struct {
	out  io.Writer
	size func() (width, height int)
}

// screen takes the terminal, if it is one and there is more than one look.
func (c *Call) screen(limit int64) *screen {
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

// end gives the terminal back as it was.
func (s *screen) end() {
	if s != nil {
		io.WriteString(s.out, "\x1b[?25h\x1b[?1049l") //nolint:errcheck // nothing more to be done
	}
}

// draw replaces what is shown.
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

func (c *Call) showSample(s *screen, sample *overview.Sample) error {
	text := sampleText(sample)
	if s != nil {
		return s.draw(text)
	}
	return c.Emit(sample, func(w io.Writer) { io.WriteString(w, text) }) //nolint:errcheck // told by the next write
}

// sampleText is a table of the servers.
func sampleText(sample *overview.Sample) string {
	var b strings.Builder
	serving, leader := 0, "no leader"
	for i := range sample.Servers {
		switch s := &sample.Servers[i]; s.Mode {
		case "":
		case "leader":
			leader = "leader " + s.Address
			serving++
		case "standalone":
			leader = "standalone"
			serving++
		default:
			serving++
		}
	}
	fmt.Fprintf(&b, "%s  %d of %s serving, %s\n\n", sample.Time.UTC().Format("2006-01-02 15:04:05Z"), serving, plural(len(sample.Servers), "server"), leader)
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	// What matters most comes first: a narrow terminal cuts the rest off.
	fmt.Fprintln(table, "server\tmode\tzxid\treq/s\tconns\twatches\tms avg\tms max\tbehind\twaiting\tanswer\tznodes\tephem\tversion\t")
	for i := range sample.Servers {
		s := &sample.Servers[i]
		zxid := "-"
		if s.Zxid != nil {
			zxid = hexID(int64(*s.Zxid))
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%.1f\t%s\t%s\t%s\t\n", s.Address, cmp.Or(s.Mode, "down"), zxid,
			fraction(s.Requests), optional(s.Connections), optional(s.Watches), fraction(s.LatencyAvg), fraction(s.LatencyMax),
			optional(sample.Lag(i)), optional(s.Outstanding), s.AnswerMillis, optional(s.Znodes), optional(s.Ephemerals), cmp.Or(s.Version, "-"))
	}
	table.Flush() //nolint:errcheck // into memory
	for i := range sample.Servers {
		if s := &sample.Servers[i]; s.Error+s.Note != "" {
			fmt.Fprintf(&b, "\n%s: %s", s.Address, s.Error+s.Note)
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
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
