package zoocfg

import (
	"slices"
	"strings"

	"github.com/zkgo/zkgo/internal/spelling"
)

// maxUnknown limits the number of unknown keys that get a warning each. A file with more unknown
// keys probably isn't a configuration file.
const maxUnknown = 100

// byteOrderMark is the first character of some UTF-8 files. decodedMark is the same character after
// properties has decoded it as ISO-8859-1.
const byteOrderMark, decodedMark = "\ufeff", "\u00ef\u00bb\u00bf"

// warnUnknown warns of a key that ZooKeeper would turn into an unused system
// property.
func (c *Config) warnUnknown(name string) {
	switch c.unknown++; {
	case c.unknown == maxUnknown+1:
		c.warn(name, "", "unknown key, and so may be others from here on: only the first %d are listed. Is this a configuration of a server?", maxUnknown)
		return
	case c.unknown > maxUnknown:
		return
	}
	if rest, ok := strings.CutPrefix(name, "zookeeper."); ok {
		if _, known := knownKeys[rest]; known || strings.HasPrefix(rest, authProviderPrefix) {
			c.warn(name, rest, "has no effect: ZooKeeper puts zookeeper. in front of the key itself; write %s", rest)
			return
		}
	}
	if rest, ok := strings.CutPrefix(name, decodedMark); ok {
		c.warn(name, rest, "unknown key: the file begins with a byte order mark, remove it")
		return
	}
	if key := guideName(name); key != "" {
		c.warn(name, key, "has no effect: ZooKeeper's guide calls it so, but reads %s; write that", key)
		return
	}
	if near := nearestKey(name); near != "" {
		c.warn(name, near, "unknown key, did you mean %s?", near)
		return
	}
	c.warn(name, "", "unknown key")
}

// guideName returns the key that ZooKeeper's guide documents as name although
// ZooKeeper doesn't read name, or "".
func guideName(name string) string {
	for _, d := range Descriptions() {
		if d.Section == "Limits" && (strings.Contains(d.Words, "("+name+")") || strings.Contains(d.Words, "("+name+" ")) {
			return d.Key
		}
	}
	return ""
}

// nearestKey returns the known key that an unknown one was probably meant to be, or
// "".
func nearestKey(name string) string {
	// The dot before the number may be missing, or another character.
	word := strings.TrimRight(name, "0123456789")
	if number := name[len(word):]; number != "" && spelling.Distance(strings.ToLower(strings.TrimRight(word, ".-_")), "server") <= 2 {
		return "server." + number
	}
	best, least := "", max(1, min(4, len(name)/4))+1
	lower, below := strings.ToLower(name), "" // below is a key that ends in the name
	for _, known := range sortedKeys() {
		k := strings.ToLower(known)
		if strings.HasSuffix(k, "."+lower) && len(lower) > 4 && (below == "" || len(known) < len(below)) {
			below = known
		}
		if abs(len(k)-len(lower)) >= least {
			continue
		}
		if d := spelling.Distance(lower, k); d < least {
			best, least = known, d
		}
	}
	if below != "" && least > 0 { // otherwise the name differs from a key only in its case
		return below
	}
	return best
}

func sortedKeys() []string {
	names := make([]string, 0, len(knownKeys))
	for name := range knownKeys {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func abs(n int) int { return max(n, -n) }
