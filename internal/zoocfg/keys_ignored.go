package zoocfg

// checkedKeys returns keys that have no effect in zkgo, although ZooKeeper checks their values.
func checkedKeys() []key {
	return []key{
		{name: "electionAlg", set: checked(electionAlg), ignored: true},
		{name: "connectToLearnerMasterLimit", set: checked(anyInteger), ignored: true},
		{name: "syncEnabled", set: checked(anyBoolean), ignored: true},
		{name: "quorum.cnxn.threads.size", set: checked(anyInteger), ignored: true},
		{name: "jvm.pause.monitor", set: checked(anyBoolean), ignored: true},
		{name: "jvm.pause.sleep.time.ms", set: checked(anyLong), ignored: true},
		{name: "jvm.pause.warn-threshold.ms", set: checked(anyLong), ignored: true},
		{name: "jvm.pause.info-threshold.ms", set: checked(anyLong), ignored: true},
	}
}

// ignoredKeys returns properties that tune the internals of ZooKeeper's server,
// belong to its clients and tools, or remain from older versions.
func ignoredKeys() []string {
	return []string{
		// threads, buffers and caches of the Java server
		"serverCnxnFactory", "watchManagerName", "nio.numSelectorThreads", "nio.numWorkerThreads",
		"nio.directBufferBytes", "nio.shutdownTimeout", "netty.advancedFlowControl.enabled",
		"netty.server.outstandingHandshake.limit", "netty.server.earlyDropSecureConnectionHandshakes",
		"commitProcessor.numWorkerThreads", "commitProcessor.maxReadBatchSize",
		"commitProcessor.maxCommitBatchSize", "commitProcessor.shutdownTimeout", "intBufferStartingSizeBytes",
		"bitHashCacheSize", "maxResponseCacheSize", "maxGetChildrenResponseCacheSize", "watcherCleanThreadsNum",
		"watcherCleanThreshold", "watcherCleanIntervalInSeconds", "maxInProcessingDeadWatchers",
		"request_throttler.shutdownTimeout", "messageTracker.BufferSize", "messageTracker.Enabled",
		// its log and snapshots
		"preAllocSize", "txnLogSizeLimitInKb", "commitLogCount", "snapshotSizeFactor", "flushDelay",
		"maxWriteQueuePollTime", "maxBatchSize", "snapshot.compression.method", "digest.enabled",
		"closeSessionTxn.enabled", "serializeLastProcessedZxid.enabled", "traceFile",
		// its election and learners
		"cnxTimeout", "fastleader.minNotificationInterval",
		"fastleader.maxNotificationInterval", "leader.ackLoggingFrequency", "leader.closeSocketAsync",
		"leader.maxConcurrentDiffSyncs", "leader.maxConcurrentSnapSyncs", "leader.maxTimeToWaitForEpoch",
		"leaderConnectDelayDuringRetryMs", "learner.asyncSending", "learner.closeSocketAsync",
		"learner.reconnectDelayMs", "follower.skipLearnerRequestToNextProcessor", "forceSnapshotSync",
		"forward_learner_requests_to_commit_processor_disabled", "observer.reconnectDelayMs",
		"observer.election.DelayMs", "observer.syncEnabled", "quorumCnxnTimeoutMs",
		"leader.nodelay", "follower.nodelay", "ipReachableTimeout",
		// metrics, audit and administration
		"metricsProvider.numWorkerThreads", "metricsProvider.maxQueueSize", "metricsProvider.workerShutdownTimeoutMs",
		"metricsProvider.prometheusMetricsSummaryRotateIntervalSeconds", "metricsProvider.httpVersion",
		"pathStats.enabled", "pathStats.delay", "pathStats.initialDelay", "pathStats.maxDepth", "pathStats.sampleRate",
		"pathStats.slotCapacity", "pathStats.slotDuration", "pathStats.topPathMax", "admin.httpVersion", "jmx.log4j.disable", "jmx.log4j.mbean", "controllerPort",
		// Kerberos and TLS of the Java platform
		"jaasLoginRenew", "requireClientAuthScheme", "kerberos.canonicalizeHostNames", "kerberos.minReLoginTimeMs",
		"requireKerberosConfig", "security.auth_to_local", "kinit",
		"ssl.context.supplier.class", "ssl.quorum.context.supplier.class", "ssl.sslProvider", "ssl.tcnative.ocsp",
		"IPAuthenticationProvider.usexforwardedfor", "letAnySaslUserDoX",
		// used by clients
		"client.secure", "clientCnxnSocket", "clientTcpKeepAlive", "disableAutoWatchReset", "request.timeout",
		"sasl.client", "sasl.client.username", "sasl.client.canonicalize.hostname", "sasl.clientconfig",
	}
}
