package zk

import "github.com/go-zookeeper/zk"

// The types of the client. Each has the meaning that go-zookeeper gives it.
//
//nolint:revive // they are documented there
type (
	ACL                   = zk.ACL
	CheckVersionRequest   = zk.CheckVersionRequest
	Conn                  = zk.Conn
	CreateRequest         = zk.CreateRequest
	CreateTTLRequest      = zk.CreateTTLRequest
	DNSHostProvider       = zk.DNSHostProvider
	DNSHostProviderOption = zk.DNSHostProviderOption
	DeleteRequest         = zk.DeleteRequest
	Dialer                = zk.Dialer
	ErrCode               = zk.ErrCode
	Event                 = zk.Event
	EventCallback         = zk.EventCallback
	EventType             = zk.EventType
	HostProvider          = zk.HostProvider
	Lock                  = zk.Lock
	Logger                = zk.Logger
	Mode                  = zk.Mode
	MultiResponse         = zk.MultiResponse
	PathVersionRequest    = zk.PathVersionRequest
	ServerClient          = zk.ServerClient
	ServerClients         = zk.ServerClients
	ServerStats           = zk.ServerStats
	SetDataRequest        = zk.SetDataRequest
	Stat                  = zk.Stat
	State                 = zk.State
)

// The constants of the client.
const (
	DefaultPort                     = zk.DefaultPort
	EventNodeChildrenChanged        = zk.EventNodeChildrenChanged
	EventNodeCreated                = zk.EventNodeCreated
	EventNodeDataChanged            = zk.EventNodeDataChanged
	EventNodeDeleted                = zk.EventNodeDeleted
	EventNotWatching                = zk.EventNotWatching
	EventSession                    = zk.EventSession
	FlagContainer                   = zk.FlagContainer
	FlagEphemeral                   = zk.FlagEphemeral
	FlagEphemeralSequential         = zk.FlagEphemeralSequential
	FlagPersistent                  = zk.FlagPersistent
	FlagPersistentSequentialWithTTL = zk.FlagPersistentSequentialWithTTL
	FlagSequence                    = zk.FlagSequence
	FlagTTL                         = zk.FlagTTL
	ModeFollower                    = zk.ModeFollower
	ModeLeader                      = zk.ModeLeader
	ModeStandalone                  = zk.ModeStandalone
	ModeUnknown                     = zk.ModeUnknown
	PermAdmin                       = zk.PermAdmin
	PermAll                         = zk.PermAll
	PermCreate                      = zk.PermCreate
	PermDelete                      = zk.PermDelete
	PermRead                        = zk.PermRead
	PermWrite                       = zk.PermWrite
	StateAuthFailed                 = zk.StateAuthFailed
	StateConnected                  = zk.StateConnected
	StateConnectedReadOnly          = zk.StateConnectedReadOnly
	StateConnecting                 = zk.StateConnecting
	StateDisconnected               = zk.StateDisconnected
	StateExpired                    = zk.StateExpired
	StateHasSession                 = zk.StateHasSession
	StateSaslAuthenticated          = zk.StateSaslAuthenticated
	StateSyncConnected              = zk.StateSyncConnected
	StateUnknown                    = zk.StateUnknown
)

// The functions of the client, its errors and its logger. A program that replaces
// DefaultLogger must replace the client's own variable.
var (
	AuthACL                    = zk.AuthACL
	Connect                    = zk.Connect
	ConnectWithDialer          = zk.ConnectWithDialer
	DigestACL                  = zk.DigestACL
	FLWCons                    = zk.FLWCons
	FLWRuok                    = zk.FLWRuok
	FLWSrvr                    = zk.FLWSrvr
	FormatServers              = zk.FormatServers
	NewDNSHostProvider         = zk.NewDNSHostProvider
	NewLock                    = zk.NewLock
	WithDialer                 = zk.WithDialer
	WithEventCallback          = zk.WithEventCallback
	WithHostProvider           = zk.WithHostProvider
	WithLogInfo                = zk.WithLogInfo
	WithLogger                 = zk.WithLogger
	WithLookupTimeout          = zk.WithLookupTimeout
	WithMaxBufferSize          = zk.WithMaxBufferSize
	WithMaxConnBufferSize      = zk.WithMaxConnBufferSize
	WorldACL                   = zk.WorldACL
	DefaultLogger              = zk.DefaultLogger
	ErrAPIError                = zk.ErrAPIError
	ErrAuthFailed              = zk.ErrAuthFailed
	ErrBadArguments            = zk.ErrBadArguments
	ErrBadVersion              = zk.ErrBadVersion
	ErrClosing                 = zk.ErrClosing
	ErrConnectionClosed        = zk.ErrConnectionClosed
	ErrDeadlock                = zk.ErrDeadlock
	ErrInvalidACL              = zk.ErrInvalidACL
	ErrInvalidFlags            = zk.ErrInvalidFlags
	ErrInvalidPath             = zk.ErrInvalidPath
	ErrNoAuth                  = zk.ErrNoAuth
	ErrNoChildrenForEphemerals = zk.ErrNoChildrenForEphemerals
	ErrNoNode                  = zk.ErrNoNode
	ErrNoServer                = zk.ErrNoServer
	ErrNodeExists              = zk.ErrNodeExists
	ErrNotEmpty                = zk.ErrNotEmpty
	ErrNotLocked               = zk.ErrNotLocked
	ErrNothing                 = zk.ErrNothing
	ErrPtrExpected             = zk.ErrPtrExpected
	ErrReconfigDisabled        = zk.ErrReconfigDisabled
	ErrSessionExpired          = zk.ErrSessionExpired
	ErrSessionMoved            = zk.ErrSessionMoved
	ErrShortBuffer             = zk.ErrShortBuffer
	ErrUnhandledFieldType      = zk.ErrUnhandledFieldType
	ErrUnknown                 = zk.ErrUnknown
)
