package proto

import "strconv"

// Code is the err field of a reply header. It implements error, so we use the same value
// for a failed request and for its reply. Ok is not an error and must not be returned as
// one (see Err).
type Code int32

// The codes of ZooKeeper 3.9 (KeeperException.Code).
const (
	Ok                          Code = 0
	ErrSystemError              Code = -1
	ErrRuntimeInconsistency     Code = -2
	ErrDataInconsistency        Code = -3
	ErrConnectionLoss           Code = -4
	ErrMarshalling              Code = -5
	ErrUnimplemented            Code = -6
	ErrOperationTimeout         Code = -7
	ErrBadArguments             Code = -8
	ErrUnknownSession           Code = -12
	ErrNewConfigNoQuorum        Code = -13
	ErrReconfigInProgress       Code = -14
	ErrAPIError                 Code = -100
	ErrNoNode                   Code = -101
	ErrNoAuth                   Code = -102
	ErrBadVersion               Code = -103
	ErrNoChildrenForEphemerals  Code = -108
	ErrNodeExists               Code = -110
	ErrNotEmpty                 Code = -111
	ErrSessionExpired           Code = -112
	ErrInvalidCallback          Code = -113
	ErrInvalidACL               Code = -114
	ErrAuthFailed               Code = -115
	ErrSessionMoved             Code = -118
	ErrNotReadOnly              Code = -119
	ErrEphemeralOnLocalSession  Code = -120
	ErrNoWatcher                Code = -121
	ErrRequestTimeout           Code = -122
	ErrReconfigDisabled         Code = -123
	ErrSessionClosedRequireSASL Code = -124
	ErrQuotaExceeded            Code = -125
	ErrThrottledOp              Code = -127
)

// Err returns nil for Ok and c otherwise.
func (c Code) Err() error {
	if c == Ok {
		return nil
	}
	return c
}

// Error returns the code's name and number, e.g. "NoNode (-101)".
func (c Code) Error() string { return c.String() + " (" + strconv.Itoa(int(c)) + ")" }

// String returns the name that ZooKeeper's Java API uses.
func (c Code) String() string {
	switch c {
	case Ok:
		return "Ok"
	case ErrSystemError:
		return "SystemError"
	case ErrRuntimeInconsistency:
		return "RuntimeInconsistency"
	case ErrDataInconsistency:
		return "DataInconsistency"
	case ErrConnectionLoss:
		return "ConnectionLoss"
	case ErrMarshalling:
		return "MarshallingError"
	case ErrUnimplemented:
		return "Unimplemented"
	case ErrOperationTimeout:
		return "OperationTimeout"
	case ErrBadArguments:
		return "BadArguments"
	case ErrUnknownSession:
		return "UnknownSession"
	case ErrNewConfigNoQuorum:
		return "NewConfigNoQuorum"
	case ErrReconfigInProgress:
		return "ReconfigInProgress"
	case ErrAPIError:
		return "APIError"
	}
	return c.userName()
}

// userName returns the names of the codes that a client's request can cause.
func (c Code) userName() string {
	switch c {
	case ErrNoNode:
		return "NoNode"
	case ErrNoAuth:
		return "NoAuth"
	case ErrBadVersion:
		return "BadVersion"
	case ErrNoChildrenForEphemerals:
		return "NoChildrenForEphemerals"
	case ErrNodeExists:
		return "NodeExists"
	case ErrNotEmpty:
		return "NotEmpty"
	case ErrSessionExpired:
		return "SessionExpired"
	case ErrInvalidCallback:
		return "InvalidCallback"
	case ErrInvalidACL:
		return "InvalidACL"
	case ErrAuthFailed:
		return "AuthFailed"
	case ErrSessionMoved:
		return "SessionMoved"
	case ErrNotReadOnly:
		return "NotReadOnly"
	case ErrEphemeralOnLocalSession:
		return "EphemeralOnLocalSession"
	case ErrNoWatcher:
		return "NoWatcher"
	case ErrRequestTimeout:
		return "RequestTimeout"
	case ErrReconfigDisabled:
		return "ReconfigDisabled"
	case ErrSessionClosedRequireSASL:
		return "SessionClosedRequireSaslAuth"
	case ErrQuotaExceeded:
		return "QuotaExceeded"
	case ErrThrottledOp:
		return "ThrottledOp"
	}
	return "Code " + strconv.Itoa(int(c))
}
