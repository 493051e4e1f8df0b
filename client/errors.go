package client

import (
	"errors"
	"strings"

	"github.com/zkgo/zkgo/proto"
)

// The codes of a server's refusals. An operation's error matches its code with
// errors.Is.
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

	// ErrRuntimeInconsistency is the result of the operations after the one that
	// failed in a transaction. The server did not try them.
	ErrRuntimeInconsistency = proto.ErrRuntimeInconsistency

	// ErrConnectionLoss means that the connection broke during the operation. The session
	// continues. It is unknown whether the server executed a write, so the error of a write
	// also matches [ErrUnknownOutcome].
	ErrConnectionLoss = proto.ErrConnectionLoss

	// ErrSessionExpired means that the operation's session has ended, and its ephemeral
	// znodes are deleted.
	ErrSessionExpired = proto.ErrSessionExpired
)

var (
	// ErrUnknownOutcome matches the error of a write that the server may or may not
	// have executed, and may even execute later: its connection broke, its session
	// ended, or its context ended after the request was sent.
	ErrUnknownOutcome = errors.New("outcome unknown")

	// ErrRequestTooLarge is the cause of [ErrBadArguments] when a request is longer than
	// [WithMaxRequest] allows. The Client doesn't send such a request.
	ErrRequestTooLarge = errors.New("the request is too large")

	// ErrClosed is the error of every operation on a Client after Close.
	ErrClosed = errors.New("client closed")

	// ErrProtocol is the cause when a server violates the ZooKeeper protocol. The
	// Client then closes the connection.
	ErrProtocol = errors.New("protocol violated")
)

// Error is the error type of all operations.
type Error struct {
	// Op is the operation's name in zookeeper.jute, e.g. "setData".
	Op string
	// Path is the path that the caller passed, "" for operations without one.
	Path string
	// Code is the server's error code, or [ErrConnectionLoss] or [ErrSessionExpired];
	// 0 if there is only Err.
	Code Code
	// Unknown means that the server may or may not have executed a write.
	Unknown bool
	// Err is the cause if there is one: the context's error, or why the connection
	// broke.
	Err error
}

// Error returns a text with operation, path, code and cause.
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

// Is reports whether target is e's code, or target is [ErrUnknownOutcome] and e is
// the error of a write with an unknown outcome.
func (e *Error) Is(target error) bool {
	if code, ok := target.(Code); ok {
		return code == e.Code && code != 0
	}
	return target == ErrUnknownOutcome && e.Unknown
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
