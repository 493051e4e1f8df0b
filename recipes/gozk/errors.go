package gozk

import (
	"errors"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/zkgo/zkgo/client"
)

// code returns the error code that an error of go-zookeeper corresponds to, or 0.
func code(err error) client.Code {
	for _, known := range []struct {
		err  error
		code client.Code
	}{
		{zk.ErrNoNode, client.ErrNoNode},
		{zk.ErrNoAuth, client.ErrNoAuth},
		{zk.ErrBadVersion, client.ErrBadVersion},
		{zk.ErrNoChildrenForEphemerals, client.ErrNoChildrenForEphemerals},
		{zk.ErrNodeExists, client.ErrNodeExists},
		{zk.ErrNotEmpty, client.ErrNotEmpty},
		{zk.ErrSessionExpired, client.ErrSessionExpired},
		{zk.ErrInvalidACL, client.ErrInvalidACL},
		{zk.ErrAuthFailed, client.ErrAuthFailed},
		{zk.ErrSessionMoved, client.ErrSessionMoved},
		{zk.ErrReconfigDisabled, client.ErrReconfigDisabled},
		{zk.ErrBadArguments, client.ErrBadArguments},
		{zk.ErrInvalidPath, client.ErrBadArguments},
		{zk.ErrInvalidFlags, client.ErrBadArguments},
		{zk.ErrShortBuffer, client.ErrBadArguments}, // a request that is too long
	} {
		if errors.Is(err, known.err) {
			return known.code
		}
	}
	// go-zookeeper has no value for some codes; they appear only in the text.
	if number, ok := strings.CutPrefix(err.Error(), "unknown error: "); ok {
		if n, err := strconv.ParseInt(number, 10, 32); err == nil {
			return client.Code(n)
		}
	}
	return 0
}

// failed returns the error of a call that failed in its session. An error without a
// code means that the connection broke.
func (r request) failed(err error) *client.Error {
	e := &client.Error{Op: r.op, Path: r.path, Code: code(err)}
	switch e.Code {
	case 0:
		e.Code, e.Unknown = client.ErrConnectionLoss, r.write
		if errors.Is(err, zk.ErrClosing) {
			err = client.ErrClosed
		}
		e.Err = err
	case client.ErrSessionExpired:
		e.Unknown = r.write
	case client.ErrBadArguments:
		e.Err = err
	}
	return e
}

// unsent returns the error of a call that was not made.
func (r request) unsent(err error) *client.Error {
	e := &client.Error{Op: r.op, Path: r.path, Err: err}
	if errors.Is(err, client.ErrSessionExpired) {
		e.Code, e.Err = client.ErrSessionExpired, nil
	}
	return e
}

// ended returns the error of a call that found the session ended, regardless of its result.
// If the server refused the call, it did not run in any session.
func (r request) ended(why, err error) *client.Error {
	e := r.unsent(why)
	refusal := err != nil && code(err) != 0 && code(err) != client.ErrSessionExpired
	e.Unknown = r.write && !refusal
	return e
}
