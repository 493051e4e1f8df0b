package proto

// CreateMode is the flags field of a create request. The operation decides which kind of
// znode the server stores (opcode 19 always makes a container). The mode decides how the
// server builds the name and which checks it makes.
type CreateMode int32

// The create modes.
const (
	ModePersistent              CreateMode = 0
	ModeEphemeral               CreateMode = 1
	ModePersistentSequential    CreateMode = 2
	ModeEphemeralSequential     CreateMode = 3
	ModeContainer               CreateMode = 4
	ModePersistentTTL           CreateMode = 5
	ModePersistentSequentialTTL CreateMode = 6
)

// Valid reports whether m is one of the seven modes.
func (m CreateMode) Valid() bool { return m >= ModePersistent && m <= ModePersistentSequentialTTL }

// Ephemeral reports whether m's znode is deleted with its session.
func (m CreateMode) Ephemeral() bool { return m == ModeEphemeral || m == ModeEphemeralSequential }

// Sequential reports whether the server appends a number to the name.
func (m CreateMode) Sequential() bool {
	return m == ModePersistentSequential || m == ModeEphemeralSequential || m == ModePersistentSequentialTTL
}

// TTL reports whether m's znode has a time to live.
func (m CreateMode) TTL() bool { return m == ModePersistentTTL || m == ModePersistentSequentialTTL }

// MaxTTL is the longest time to live, in milliseconds.
const MaxTTL = 1<<40 - 1
