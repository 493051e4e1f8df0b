package client

import (
	"errors"
	"strings"

	"github.com/zkgo/zkgo/proto"
)

// The codes of a server's refusals. Every error of an operation matches its code
// with errors.Is.
const (
	ErrSystemError             = proto.ErrSystemError
	ErrMarshalling             = proto.ErrMarshalling
	ErrUnimplemented           = proto.ErrUnimplemented
	ErrBadArguments            = proto.ErrBadArguments
	ErrNewConfigNoQuorum       = proto.ErrNewConfigNoQuorum
	ErrReconfigInProgress      = proto.ErrReconfigInProgress
	ErrNoNode                  = proto.ErrNoNode
	ErrNoAuth                  = proto.ErrNoAuth
	ErrBadVersion              = proto.ErrBadVersion
	ErrNoChildrenForEphemerals = proto.ErrNoChildrenForEphemerals
	ErrNodeExists              = proto.ErrNodeExists
	ErrNotEmpty                = proto.ErrNotEmpty
	ErrInvalidACL              = proto.ErrInvalidACL
	ErrAuthFailed              = proto.ErrAuthFailed
	ErrSessionMoved            = proto.ErrSessionMoved
	ErrNotReadOnly             = proto.ErrNotReadOnly
	ErrEphemeralOnLocalSession = proto.ErrEphemeralOnLocalSession
	ErrNoWatcher               = proto.ErrNoWatcher
	ErrReconfigDisabled        = proto.ErrReconfigDisabled
	ErrQuotaExceeded           = proto.ErrQuotaExceeded
	ErrThrottledOp             = proto.ErrThrottledOp

	// ErrRuntimeInconsistency is the result of the operations of a transaction
	// behind the one that failed: they were not tried.
	ErrRuntimeInconsistency = proto.ErrRuntimeInconsistency

	// ErrConnectionLoss says that the connection broke while the operation was
	// under way. The session lives on. Whether a write was done is not known: it
	// matches [ErrUnknownOutcome] too.
	ErrConnectionLoss = proto.ErrConnectionLoss

	// ErrSessionExpired says that the session for which the operation was made has
	// ended, and its ephemeral znodes with it.
	ErrSessionExpired = proto.ErrSessionExpired
)

var (
	// ErrUnknownOutcome matches the error of a write that may or may not have
	// been done, and may even be done later: its connection broke, its session
	// ended, or its context ended after it was sent.
	ErrUnknownOutcome = errors.New("outcome unknown")

	// ErrRequestTooLarge is the cause of [ErrBadArguments] when a request is longer
	// than [WithMaxRequest] allows: it was not sent.
	ErrRequestTooLarge = errors.New("the request is too large")

	// ErrClosed is the error of everything on a Client after Close.
	ErrClosed = errors.New("client closed")

	// ErrProtocol is the cause when a server answered what no ZooKeeper answers.
	// The connection is closed then.
	ErrProtocol = errors.New("protocol violated")
)

// Error is the error of every operation.
type Error struct {
	// Op names the operation as zookeeper.jute does, for instance "setData".
	Op string
	// Path is the path as the caller gave it, "" for operations without one.
	Path string
	// Code is the server's refusal, or [ErrConnectionLoss] or [ErrSessionExpired];
	// 0 if there is only Err.
	Code Code
	// Unknown says that a write may or may not have been done.
	Unknown bool
	// Err is the cause, if there is more to say: the context's error, or why the
	// connection broke.
	Err error
}

// Error names operation, path, code and cause.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("zookeeper: ")
	b.WriteString(e.Op)
	if e.Path != "" {
		b.WriteByte(' ')
		b.WriteString(e.Path)
	}
	if e.Code != 0 {
		b.WriteString(": ")
		b.WriteString(e.Code.Error())
	}
	if e.Unknown {
		b.WriteString(" (outcome unknown)")
	}
	if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(e.Err.Error())
	}
	return b.String()
}

// Is reports whether target is e's code, or [ErrUnknownOutcome] and e is of a
// write whose outcome is unknown.
func (e *Error) Is(target error) bool {
	if code, ok := target.(Code); ok {
		return code == e.Code && code != 0
	}
	return target == ErrUnknownOutcome && e.Unknown
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
