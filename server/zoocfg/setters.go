package zoocfg

import (
	"errors"
	"math"
	"path/filepath"
	"strings"
	"time"
)

// setTick changes the tick, and the session timeouts with it as long as they
// are the ones that follow from it.
func (c *Config) setTick(d time.Duration) {
	if !c.isSet("minSessionTimeout") && c.MinSessionTimeout == 2*c.TickTime {
		c.MinSessionTimeout = 2 * d
	}
	if !c.isSet("maxSessionTimeout") && c.MaxSessionTimeout == 20*c.TickTime {
		c.MaxSessionTimeout = 20 * d
	}
	c.TickTime = d
}

// setSessionTimeout takes -1 for so many ticks, as if the line were not there.
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

// setDataDir moves the log along if it has no directory of its own.
func (c *Config) setDataDir(v string) error {
	if v == "" {
		return errNoDirectory
	}
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
	c.DataLogDir = v
	c.warnRelative("dataLogDir", v)
	return nil
}

func (c *Config) warnRelative(key, path string) {
	if !filepath.IsAbs(path) && !strings.HasPrefix(path, "./") {
		c.warn(key, "", "%s is relative. Prepend ./ to indicate that you're sure!", path)
	}
}

// setJuteMaxBuffer moves the extra size along unless it has been set.
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

// maxHours is the longest purge interval a Duration holds: 292 years.
const maxHours = int(math.MaxInt64 / int64(time.Hour))
