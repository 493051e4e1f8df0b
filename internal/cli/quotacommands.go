package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/zkgo/zkgo/client"
)

// quotaCommands returns the commands for limits of subtrees.
func quotaCommands() []Command {
	options := func(arg string) []Option {
		return []Option{
			{Name: "n", Long: "count", Arg: arg, Group: "limit", Help: "num soft quota"},
			{Name: "b", Long: "bytes", Arg: arg, Group: "limit", Help: "bytes soft quota"},
			{Name: "N", Long: "hard-count", Arg: arg, Group: "limit", Help: "num hard quota"},
			{Name: "B", Long: "hard-bytes", Arg: arg, Group: "limit", Help: "bytes hard quota"},
		}
	}
	run := func(do func(quotaCall, context.Context) error) func(context.Context, *Call) error {
		return func(ctx context.Context, c *Call) error { return do(quotaCall{c}, ctx) }
	}
	return []Command{
		{Name: "setquota", Usage: "-n|-b|-N|-B val path", Verb: "setquota path", Short: "limit a subtree", Least: 1, Most: 1, Options: options("val"), Run: run(quotaCall.set), Required: "limit"},
		{Name: "listquota", Usage: "path", Verb: "listquota path...", Short: "print the limits of subtrees", Least: 1, Most: Any, Run: run(quotaCall.list)},
		{Name: "delquota", Usage: "[-n|-b|-N|-B] path", Verb: "delquota path", Short: "remove the limits of a subtree", Least: 1, Most: 1, Options: options(""), Run: run(quotaCall.remove)},
	}
}

// quotaCall is a call of one of these commands.
type quotaCall struct{ *Call }

// limitOption returns the given option and its key, or "" if there is none.
func (c quotaCall) limitOption() (option, key string) {
	for _, o := range c.command.Options {
		if c.Has(o.Name) {
			return o.Name, map[string]string{"n": softCount, "b": softBytes, "N": hardCount, "B": hardBytes}[o.Name]
		}
	}
	return "", ""
}

// noQuota returns the error for a path without a quota.
func noQuota(path string) error { return refuse("quota for " + path + " does not exist.") }

func (c quotaCall) list(ctx context.Context) error { return c.eachPath(ctx, c.listOne) }

// listOne prints the limits of one subtree.
func (c quotaCall) listOne(ctx context.Context, path string) error {
	c.title = "" // the output names the path
	zk, full, err := c.atRoot(path)
	if err != nil {
		return err
	}
	fmt.Fprintln(c.Err, "absolute path is "+quotaRoot+full+"/"+quotaLimits)
	if err := checkPath(quotaRoot + full + "/" + quotaLimits); err != nil {
		return err
	}
	limits, err := readTrack(ctx, zk, quotaRoot+full+"/"+quotaLimits)
	if err == nil {
		var counted track
		if counted, err = readTrack(ctx, zk, quotaRoot+full+"/"+quotaStats); err == nil {
			return c.Emit(map[string]any{"path": path, "quota": limits, "stat": counted}, func(w io.Writer) {
				fmt.Fprintf(w, "Output quota for %s %s\n", path, limits)
				fmt.Fprintf(w, "Output stat for %s %s\n", path, counted)
			})
		}
	}
	if errors.Is(err, client.ErrNoNode) {
		return noQuota(path)
	}
	return err
}

// atRoot returns the connection without the chroot, because quotas are outside of any
// chroot, and the full path for that connection.
func (c quotaCall) atRoot(path string) (zk *client.Client, full string, err error) {
	if zk, err = c.shell.root(); err != nil {
		return nil, "", err
	}
	return zk, c.shell.chroot + path, nil
}

func readTrack(ctx context.Context, zk *client.Client, path string) (track, error) {
	data, _, err := zk.Get(ctx, path)
	if err != nil {
		return nil, err
	}
	t, err := parseTrack(string(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

func (c quotaCall) remove(ctx context.Context) error {
	zk, full, err := c.atRoot(c.Args[0])
	if err != nil {
		return err
	}
	home := quotaRoot + full
	if err := checkPath(home + "/" + quotaLimits); err != nil {
		return err
	}
	if full == "/" {
		home = quotaRoot
	}
	limits, err := readTrack(ctx, zk, home+"/"+quotaLimits)
	switch {
	case errors.Is(err, client.ErrNoNode):
		fmt.Fprintln(c.warnings(), "Quota does not exist for "+c.Args[0])
		return nil
	case err != nil:
		return err
	}
	if _, key := c.limitOption(); key != "" {
		limits[key] = -1
		_, err := zk.Set(ctx, home+"/"+quotaLimits, []byte(limits.String()), client.AnyVersion)
		return err
	}
	names, _, err := zk.Children(ctx, home)
	if err != nil {
		return err
	}
	// We delete only the quota's own znodes: quotas further below must stay.
	for _, name := range []string{quotaLimits, quotaStats} {
		if !slices.Contains(names, name) {
			continue
		}
		if err := zk.Delete(ctx, home+"/"+name, client.AnyVersion); err != nil {
			return err
		}
	}
	return trimQuota(ctx, zk, home)
}

// trimQuota deletes empty znodes from path upwards.
func trimQuota(ctx context.Context, zk *client.Client, path string) error {
	for path != quotaRoot {
		err := zk.Delete(ctx, path, client.AnyVersion)
		if errors.Is(err, client.ErrNotEmpty) {
			return nil
		}
		if err != nil {
			return err
		}
		path = path[:strings.LastIndexByte(path, '/')]
	}
	return nil
}

func (c quotaCall) set(ctx context.Context) error {
	zk, full, err := c.atRoot(c.Args[0])
	if err != nil {
		return err
	}
	if strings.HasPrefix(full, quotaRoot) {
		return refuse("cannot set a quota under the path: " + quotaRoot)
	}
	key, value, err := c.limit()
	if err != nil {
		return err
	}
	if err := checkPath(c.Args[0]); err != nil {
		return err
	}
	if _, found, err := zk.Exists(ctx, full); err != nil {
		return err
	} else if !found {
		return refuse(c.Args[0] + " does not exist.")
	}
	if full == "/" {
		return refuse("Path must not end with / character") // a quota on the root has no effect
	}
	if err := c.noOtherQuota(ctx, zk, full); err != nil {
		return err
	}
	if err := zk.EnsurePath(ctx, quotaRoot+full); err != nil {
		return err
	}
	return c.storeQuota(ctx, zk, quotaRoot+full, key, value)
}

// limit parses the limit to set.
func (c quotaCall) limit() (key string, value int64, err error) {
	option, key := c.limitOption()
	bits := 64
	if key == softCount || key == hardCount {
		bits = 32
	}
	value, err = strconv.ParseInt(c.Value(option), 10, bits)
	switch {
	case err != nil:
		return "", 0, misuse("NumberFormatException happens when parsing the option value")
	case bits == 32 && value <= 0:
		return "", 0, misuse("the num quota must be greater than zero")
	case value < 0:
		return "", 0, misuse("the bytes quota must be greater than or equal to zero")
	}
	return key, value, nil
}

// noOtherQuota returns an error if there is a quota above or below full: only the
// innermost one would have an effect.
func (c quotaCall) noOtherQuota(ctx context.Context, zk *client.Client, full string) error {
	inner := errors.New("found")
	var at string
	err := walkBelow(quotaRoot+full, func(path string) error {
		owner, isLimit := strings.CutSuffix(path, "/"+quotaLimits)
		if isLimit && owner != quotaRoot+full {
			at = owner[len(quotaRoot):]
			return inner
		}
		return nil
	}, func(path string) ([]string, error) {
		names, _, err := zk.Children(ctx, path)
		return names, err
	})
	switch {
	case errors.Is(err, inner):
		return refuse(c.Args[0] + " has a child " + strings.TrimPrefix(at, c.shell.chroot) + " which has a quota")
	case err != nil:
		return err
	}
	for at := full[:strings.LastIndexByte(full, '/')]; at != ""; at = at[:strings.LastIndexByte(at, '/')] {
		_, found, err := zk.Exists(ctx, quotaRoot+at+"/"+quotaLimits)
		if err != nil {
			return err
		}
		if found {
			return refuse(c.Args[0] + " has a parent " + at + " which has a quota")
		}
	}
	return nil
}

// storeQuota adds a limit to the existing ones, and warns if it's already exceeded.
func (c quotaCall) storeQuota(ctx context.Context, zk *client.Client, home, key string, value int64) error {
	limits, err := readTrack(ctx, zk, home+"/"+quotaLimits)
	created := errors.Is(err, client.ErrNoNode)
	if err != nil && !created {
		return err
	}
	if created {
		limits = track{softCount: -1, softBytes: -1, hardCount: -1, hardBytes: -1}
	}
	limits[key] = value
	if created {
		if _, err := zk.Create(ctx, home+"/"+quotaLimits, []byte(limits.String())); err != nil {
			return err
		}
		_, err := zk.Create(ctx, home+"/"+quotaStats, []byte(track{softCount: 0, softBytes: 0}.String()))
		if err != nil && !errors.Is(err, client.ErrNodeExists) {
			return err
		}
	}
	counted, err := readTrack(ctx, zk, home+"/"+quotaStats)
	if err != nil {
		return err
	}
	if limits.below(counted, softCount, hardCount) {
		fmt.Fprintf(c.warnings(), "[Warning]: the count quota you create is less than the existing count:%d\n", counted.get(softCount))
	}
	if limits.below(counted, softBytes, hardBytes) {
		fmt.Fprintf(c.warnings(), "[Warning]: the bytes quota you create is less than the existing bytes:%d\n", counted.get(softBytes))
	}
	if created {
		return nil
	}
	_, err = zk.Set(ctx, home+"/"+quotaLimits, []byte(limits.String()), client.AnyVersion)
	return err
}

// warnings returns the stream for warnings: the data's, as in zkCli.sh, unless the data is JSON.
func (c *Call) warnings() io.Writer {
	if c.JSON() {
		return c.Err
	}
	return c.Out
}

// The znodes with the limits and counters of subtrees.
const (
	quotaRoot   = "/zookeeper/quota"
	quotaLimits = "zookeeper_limits"
	quotaStats  = "zookeeper_stats"
)

// track is the content of a quota znode: limits or counters. −1 means no limit.
type track map[string]int64

// The keys of a track: limits of the number of znodes and of bytes, soft (a warning)
// and hard (an error).
const (
	softCount = "count"
	softBytes = "bytes"
	hardCount = "countHardLimit"
	hardBytes = "byteHardLimit"
)

// parseTrack parses the output of [track.String] and the format of older versions.
func parseTrack(text string) (track, error) {
	t := track{}
	for pair := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ';' }) {
		key, value, _ := strings.Cut(pair, "=")
		value, _, _ = strings.Cut(value, "=")
		if value == "" {
			t[key] = -1
			continue
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("quota %q: %q is not a number", text, pair)
		}
		t[key] = n
	}
	return t, nil
}

// get returns a value, or −1 if there is none.
func (t track) get(key string) int64 {
	if v, ok := t[key]; ok {
		return v
	}
	return -1
}

// String returns ZooKeeper's format: count first, bytes second, and a seemingly
// superfluous "=" before the rest, for old parsers that only know these two.
func (t track) String() string {
	var rest []string
	for key := range t {
		if key != softCount && key != softBytes {
			rest = append(rest, key)
		}
	}
	slices.Sort(rest)
	var b strings.Builder
	fmt.Fprintf(&b, "%s=%d,%s=%d", softCount, t.get(softCount), softBytes, t.get(softBytes))
	if len(rest) > 0 {
		b.WriteByte('=')
	}
	for _, key := range rest {
		fmt.Fprintf(&b, ";%s=%d", key, t[key])
	}
	return b.String()
}

// below reports whether counted exceeds one of the limits with these keys.
func (t track) below(counted track, keys ...string) bool {
	for _, key := range keys {
		base := softCount
		if key == softBytes || key == hardBytes {
			base = softBytes
		}
		if limit := t.get(key); limit > -1 && limit < counted.get(base) {
			return true
		}
	}
	return false
}
