package zoocfg

import (
	"errors"
	"math"
	"path/filepath"
	"strings"
	"time"
)

// setTick changes the tick, and the session timeouts if they are derived from it.
func (c *Config) setTick(d time.Duration) {
	if !c.isSet("minSessionTimeout") && c.MinSessionTimeout == 2*c.TickTime {
		c.MinSessionTimeout = 2 * d
	}
	if !c.isSet("maxSessionTimeout") && c.MaxSessionTimeout == 20*c.TickTime {
		c.MaxSessionTimeout = 20 * d
	}
	c.TickTime = d
}

// setSessionTimeout sets a timeout. -1 means the default, which is a multiple of the
// tick.
func (c *Config) setSessionTimeout(key string, field *time.Duration, d, ticks time.Duration) {
	if d < 0 {
		d = ticks * c.TickTime
		delete(c.origin, key)
	}
	*field = d
}

func (c *Config) isSet(key string) bool {
	_, ok := c.origin[key]
	return ok
}

var errNoDirectory = errors.New("expected a directory, got nothing")

// setDataDir also sets the log directory if that wasn't set separately.
func (c *Config) setDataDir(v string) error {
	if v == "" {
		return errNoDirectory
	}
	v = filePath(v)
	if !c.isSet("dataLogDir") && c.DataLogDir == c.DataDir {
		c.DataLogDir = v
	}
	c.DataDir = v
	c.warnRelative("dataDir", v)
	return nil
}

func (c *Config) setDataLogDir(v string) error {
	if v == "" {
		return errNoDirectory
	}
	c.DataLogDir = filePath(v)
	c.warnRelative("dataLogDir", v)
	return nil
}

// filePath returns the path as java.io.File represents it: without double and
// trailing slashes, but with its dots.
func filePath(path string) string {
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	if len(path) > 1 {
		path = strings.TrimSuffix(path, "/")
	}
	return path
}

// setAddress accepts any name, but rejects a value in brackets or with a colon that
// isn't an IPv6 address. Java's empty name is the loopback address, not the wildcard.
func setAddress(field func(*Config) *string) setter {
	return setter{func(c *Config, v string) error {
		if strings.HasPrefix(v, "[") || strings.Contains(v, ":") {
			inner, opened := strings.CutPrefix(v, "[")
			inner, closed := strings.CutSuffix(inner, "]")
			if opened != closed || !strings.Contains(inner, ":") || !isLiteral(inner) {
				return expected("a host name or an address", v)
			}
			v = inner
		}
		if v == "" {
			v = "localhost"
		}
		*field(c) = v
		return nil
	}, func(c *Config) string { return *field(c) }}
}

// setListenAddress is setAddress for a key with an empty value that means all addresses.
func setListenAddress(field func(*Config) *string) setter {
	s := setAddress(field)
	set := s.set
	s.set = func(c *Config, v string) error {
		if v == "" {
			*field(c) = ""
			return nil
		}
		return set(c, v)
	}
	return s
}

func (c *Config) warnRelative(key, path string) {
	if !filepath.IsAbs(path) && !strings.HasPrefix(path, "./") {
		c.warn(key, "", "%s is relative. Prepend ./ to indicate that you're sure!", path)
	}
}

// setJuteMaxBuffer also sets the extra size if that wasn't set separately.
func (c *Config) setJuteMaxBuffer(v string) error {
	n, err := propertyNumber(v, 1, math.MaxInt32)
	if err != nil {
		return err
	}
	if !c.isSet("jute.maxbuffer.extrasize") && c.JuteExtraSize == c.JuteMaxBuffer {
		c.JuteExtraSize = int(n)
	}
	c.JuteMaxBuffer = int(n)
	return nil
}

func setPeerType(c *Config, v string) error {
	role, err := parseRole(v)
	if err == nil {
		c.PeerType = role
	}
	return err
}

func setPurgeInterval(c *Config, v string) error {
	n, err := number(v, math.MinInt32, math.MaxInt32)
	if err == nil {
		c.AutopurgeInterval = time.Duration(min(n, maxHours)) * time.Hour
	}
	return err
}

// maxHours is the longest purge interval that fits a Duration: 292 years.
const maxHours = int(math.MaxInt64 / int64(time.Hour))
