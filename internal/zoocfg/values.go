package zoocfg

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// A setter checks and stores one trimmed value, and formats the stored value as in
// the file.
type setter struct {
	set  func(c *Config, value string) error
	show func(c *Config) string
}

// takes returns a setter for a key with special rules.
func takes(set func(c *Config, value string) error, show func(c *Config) string) setter {
	return setter{set, show}
}

func expected(what, value string) error {
	return fmt.Errorf("expected %s, got %q", what, value)
}

// boolean is QuorumPeerConfig.parseBoolean, also for system properties. For those
// ZooKeeper reads anything but "true" as false, which hides a typo such as a misspelt
// "yes".
func boolean(field func(*Config) *bool) setter {
	return setter{func(c *Config, v string) error {
		switch strings.ToLower(v) {
		case "true":
			*field(c) = true
		case "false":
			*field(c) = false
		default:
			return fmt.Errorf("Invalid option %s: expected true or false", v)
		}
		return nil
	}, func(c *Config) string { return strconv.FormatBool(*field(c)) }}
}

// onUnlessNo is a property that only "no" disables. It rejects "false", because
// ZooKeeper would read it as yes although its writer meant no.
func onUnlessNo(field func(*Config) *bool) setter {
	return setter{func(c *Config, v string) error {
		switch v {
		case "yes", "true":
			*field(c) = true
		case "no":
			*field(c) = false
		default:
			return expected("yes or no", v)
		}
		return nil
	}, showYes(field)}
}

// offUnlessYes is a property that only "yes" enables. It rejects "true", as
// onUnlessNo rejects "false".
func offUnlessYes(field func(*Config) *bool) setter {
	return setter{func(c *Config, v string) error {
		switch v {
		case "yes":
			*field(c) = true
		case "no", "false":
			*field(c) = false
		default:
			return expected("yes or no", v)
		}
		return nil
	}, showYes(field)}
}

func text(field func(*Config) *string) setter {
	return setter{func(c *Config, v string) error {
		*field(c) = v
		return nil
	}, func(c *Config) string { return *field(c) }}
}

// list is a comma-separated list. Blanks around its parts and empty parts are
// dropped.
func list(field func(*Config) *[]string) setter {
	return setter{func(c *Config, v string) error {
		*field(c) = commaList(v)
		return nil
	}, func(c *Config) string { return strings.Join(*field(c), ",") }}
}

func commaList(v string) []string {
	var parts []string
	for _, p := range strings.Split(v, ",") {
		if p = trim(p); p != "" {
			parts = append(parts, p)
		}
	}
	return parts
}

// number parses what Java parses with Integer.parseInt.
func number(v string, least, most int) (int, error) {
	n, ok := parseInt(v)
	if !ok || n < least || n > most {
		return 0, expected(rangeText(int64(least), int64(most)), v)
	}
	return n, nil
}

func rangeText(least, most int64) string {
	switch {
	case least == math.MinInt32 && most == math.MaxInt32:
		return "an integer"
	case most >= math.MaxInt32:
		return fmt.Sprintf("an integer of at least %d", least)
	}
	return fmt.Sprintf("an integer from %d to %d", least, most)
}

// integer is an integer key of QuorumPeerConfig.
func integer(least int, field func(*Config) *int) setter {
	return setter{func(c *Config, v string) (err error) {
		n, err := number(v, least, math.MaxInt32)
		if err == nil {
			*field(c) = n
		}
		return err
	}, showInt(field)}
}

// portNumber is a key of QuorumPeerConfig that becomes part of a socket address.
func portNumber(field func(*Config) *int) setter {
	return setter{func(c *Config, v string) error {
		n, ok := parseInt(v)
		if !ok {
			return expected("a port number", v)
		}
		if n < 0 || n > 65535 {
			return fmt.Errorf("%w:%d: expected 0 to 65535", ErrPortRange, n)
		}
		*field(c) = n
		return nil
	}, showInt(field)}
}

// propertyNumber parses what Java parses with Integer.getInteger or Long.getLong, including
// hexadecimal and octal numbers. ZooKeeper uses the default if the text isn't a number. We
// return an error, because a server should not run with another value than the one in the
// file.
func propertyNumber(v string, least, most int64) (int64, error) {
	n, ok := decode(v)
	if !ok || n < least || n > most {
		return 0, expected(rangeText(least, most), v)
	}
	return n, nil
}

func propInt(least int64, field func(*Config) *int) setter {
	return setter{func(c *Config, v string) error {
		n, err := propertyNumber(v, least, math.MaxInt32)
		if err == nil {
			*field(c) = int(n)
		}
		return err
	}, showInt(field)}
}

// insteadBelow replaces a number below least, like ZooKeeper, and warns if name isn't empty.
func insteadBelow(name string, least int64, instead string, s setter) setter {
	set := s.set
	s.set = func(c *Config, v string) error {
		if n, ok := decode(v); ok && n < least {
			if name != "" {
				c.warn(name, "", "%s is below %d: using %s", v, least, instead)
			}
			v = instead
		}
		return set(c, v)
	}
	return s
}

// unused is a key that has no effect in zkgo. ZooKeeper doesn't check its value either: an
// unreadable value should not keep the server from starting.
func unused(name string, s setter) key {
	set := s.set
	s.set = func(c *Config, v string) error {
		if err := set(c, v); err != nil {
			c.warn(name, "", "has no effect here, but its value may be a mistake: %v", err)
		}
		return nil
	}
	return key{name: name, set: s}
}

func propLong(least int64, field func(*Config) *int64) setter {
	return setter{func(c *Config, v string) error {
		n, err := propertyNumber(v, least, math.MaxInt64)
		if err == nil {
			*field(c) = n
		}
		return err
	}, func(c *Config) string { return strconv.FormatInt(*field(c), 10) }}
}

// maxMillis is the largest number of milliseconds that fits a Duration.
const maxMillis = math.MaxInt64 / int64(time.Millisecond)

func propMillis(least int64, field func(*Config) *time.Duration) setter {
	return setter{func(c *Config, v string) error {
		n, err := propertyNumber(v, least, maxMillis)
		if err == nil {
			*field(c) = time.Duration(n) * time.Millisecond
		}
		return err
	}, showMillis(field)}
}

// rateLimiter is one key for two intervals: between two snapshots, and between two
// restores. If it's unset, ZooKeeper uses 300 ms for snapshots and 5 minutes for
// restores.
func rateLimiter() setter {
	s := propMillis(0, func(c *Config) *time.Duration { return &c.Admin.RateLimiterInterval })
	set := s.set
	s.set = func(c *Config, v string) error {
		err := set(c, v)
		if err == nil {
			c.Admin.RestoreInterval = c.Admin.RateLimiterInterval
		}
		return err
	}
	return s
}

// millis is a key of QuorumPeerConfig in milliseconds.
func millis(least int, store func(c *Config, d time.Duration), field func(*Config) *time.Duration) setter {
	return setter{func(c *Config, v string) error {
		n, err := number(v, least, math.MaxInt32)
		if err == nil {
			store(c, time.Duration(n)*time.Millisecond)
		}
		return err
	}, showMillis(field)}
}

func showMillis(field func(*Config) *time.Duration) func(*Config) string {
	return func(c *Config) string { return strconv.FormatInt(field(c).Milliseconds(), 10) }
}

func showInt(field func(*Config) *int) func(*Config) string {
	return func(c *Config) string { return strconv.Itoa(*field(c)) }
}

func showYes(field func(*Config) *bool) func(*Config) string {
	return func(c *Config) string {
		if *field(c) {
			return "yes"
		}
		return "no"
	}
}

// oneOf is a value from a fixed set, compared case-insensitively.
func oneOf(field func(*Config) *string, values ...string) setter {
	return setter{func(c *Config, v string) error {
		for _, known := range values {
			if strings.EqualFold(v, known) {
				*field(c) = known
				return nil
			}
		}
		return expected("one of "+strings.Join(values, ", "), v)
	}, func(c *Config) string { return *field(c) }}
}

// checked is a key that has no effect in zkgo. ZooKeeper checks its value: a file with an invalid
// value isn't valid.
func checked(check func(v string) error) setter {
	return setter{set: func(_ *Config, v string) error { return check(v) }}
}

func anyInteger(v string) error {
	_, err := number(v, math.MinInt32, math.MaxInt32)
	return err
}

func anyLong(v string) error {
	if _, ok := parseLong(v); !ok {
		return expected("an integer", v)
	}
	return nil
}

func anyBoolean(v string) error {
	var b bool
	return boolean(func(*Config) *bool { return &b }).set(nil, v)
}

var errElectionAlg = errors.New("Invalid electionAlg value. Only 3 is supported.")

func electionAlg(v string) error {
	n, ok := parseInt(v)
	if !ok {
		return expected("3", v)
	}
	if n != 3 {
		return errElectionAlg
	}
	return nil
}
