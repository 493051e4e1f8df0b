package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The znodes that hold limits and counters of subtrees.
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
			return nil, fmt.Errorf("quota %q: %q is no number", text, pair)
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
