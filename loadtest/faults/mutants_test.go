// SPDX-License-Identifier: Apache-2.0

package faults

// A bug that several rows must notice.
const (
	deadline = `t = max(0, t-max(minSlack, t/slackDivisor))`
	capped   = `context.WithTimeout(context.Background(), min(timeout, e.dialer.timeout))`
	uncapped = `context.WithTimeout(context.Background(), timeout)`
	spared   = `	return &hook.CallError{Cause: hook.BreakerOpen,`
	readsCA  = `func (c *credentials) readCA(at manifest.Origin, name string, path *field.Path) ([]byte, []*x509.Certificate) {
	if name == "" {
		return nil, nil
	}
	bundle, err := c.in.File(at, name)`
	bypassing = `	if rule, ok := bypass(req); ok {
`
)

// mutants are the bugs that the rows must notice, in the order of the rows.
var mutants = []mutant{
	noBreaker("F1", "calls failed, at most 70.0 % may"),
	{row: "F1", bug: "60 ms pass before an open circuit is noticed", file: "transport/race.go", old: spared, new: "	time.Sleep(60 * time.Millisecond)\n" + spared,
		says: "answers come late from 1s on"},
	{row: "F1", bug: "60 ms pass before a refused connection is noticed", file: "transport/dial.go", old: `		return nil, &dialError{stage: "connect"`,
		new: `		time.Sleep(60 * time.Millisecond)` + "\n" + `		return nil, &dialError{stage: "connect"`, says: "answers come late under the fault"},
	{row: "F2", bug: "an attempt that nobody got is not repeated elsewhere", file: "transport/decision.go", old: "	case end.unsent && e.others:",
		new: "	case end.unsent && e.others:\n		return d.answer(end)\n	case false:", says: "(Unreachable)"},
	{row: "F2", bug: "60 ms pass before an Endpoint with an open circuit is passed over", file: "breaker/breaker.go",
		old: "	defer b.mu.Unlock()\n	return b.ask(cluster, resource, now)",
		new: "	t, ok := b.ask(cluster, resource, now)\n	b.mu.Unlock()\n	if !ok {\n		time.Sleep(60 * time.Millisecond)\n	}\n	return t, ok", says: "answers come late under the fault"},
	noBreaker("F3", "calls failed, at most 30.0 % may"),
	{row: "F3", bug: "a connection may take as long as a call", file: "transport/dial.go", old: capped, new: uncapped, says: "answers come late under the fault"},
	{row: "F4", bug: "a connection may take as long as a call, and is not counted as under way", file: "transport/dial.go",
		old: "	ctx, cancel := " + capped, new: "	e.outstanding.Add(-1)\n	defer e.outstanding.Add(1)\n	ctx, cancel := " + uncapped, says: "(Timeout)"},
	{row: "F5", bug: "a connection without a handshake is not closed", file: "transport/dial.go", old: "	if err := secured.HandshakeContext(ctx); err != nil {\n		_ = raw.Close()",
		new:  "	_ = raw.SetDeadline(time.Now().Add(min(timeout, e.dialer.timeout)))\n	if err := secured.Handshake(); err != nil {\n		time.AfterFunc(time.Hour, func() { _ = raw.Close() })",
		says: "descriptors are open"},
	noBreaker("F5", "calls failed, at most 30.0 % may"),
	{row: "F6/expired", bug: "certificates may have expired", file: "transport/dial.go", old: "	secured := tls.Client(plain, e.origin.tls)",
		new: `	config := e.origin.tls.Clone()
	config.Time = func() time.Time { return time.Now().Add(-2 * time.Minute) }
	secured := tls.Client(plain, config)`, says: "reviews have arrived"},
	{row: "F6/other-authority", bug: "certificates are not verified", file: "transport/spec.go", old: "		DynamicRecordSizingDisabled: true,",
		new: "		DynamicRecordSizingDisabled: true,\n		InsecureSkipVerify: true,", says: "reviews have arrived"},
	{row: "F6/wrong-name", bug: "names are not verified", file: "transport/spec.go", old: "		if !cfg.RootCAs.AppendCertsFromPEM(bundle) {",
		new: `		roots := cfg.RootCAs
		cfg.InsecureSkipVerify = true
		cfg.VerifyConnection = func(s tls.ConnectionState) error {
			_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots})
			return err
		}
		if !cfg.RootCAs.AppendCertsFromPEM(bundle) {`, says: "reviews have arrived"},
	{row: "F6/expired", bug: "60 ms pass before an open circuit is noticed", file: "transport/race.go", old: spared, new: "	time.Sleep(60 * time.Millisecond)\n" + spared,
		says: "answers come late under the fault"},
	{row: "F7", bug: "a webhook has the time of the admission", file: "dispatcher/ask.go", old: "now.Add(min(full, left-reserve(left, following)))",
		new: "now.Add(left-reserve(left, following))", says: "the webhooks had 1s"},
	noBreaker("F7", "calls failed, at most 30.0 % may"),
	hedgingOff("F8", "waited for the slow answer"),
	{row: "F8", bug: "a hedge waits for half of the time", file: "transport/latency.go",
		old: "max(min(high, hedgeOverMedian*median, left/2), hedgeFloor)", new: "max(median, high, left/2)", says: "waited for the slow answer"},
	hedgingOff("F9", "no call was hedged"),
	noBudget("F9", "extra-attempts"),
	hedgingOff("F10", "no call was hedged"),
	noBudget("F10", "extra-attempts"),
	{row: "F10", bug: "a webhook has an eighth of its time", file: "dispatcher/ask.go", old: "now.Add(min(full, left-reserve(left, following)))",
		new: "now.Add(min(full/8, left-reserve(left, following)))", says: "no fault excuses that hurt-fail.example.com failed (Timeout)"},
	noBreaker("F11", "of deployments that it hangs on"),
	{row: "F11", bug: "one resource opens the circuit of all", file: "breaker/cluster.go",
		old: "	return !rest.bad(&c.breaker.settings)\n", new: "	return false && !rest.bad(&c.breaker.settings)\n", says: "no fault excuses"},
	forcedAlways("F11"),
	{row: "F12", bug: "a connection that is reset is not followed by a retry", file: "transport/decision.go",
		old: "case !d.mayAttempt(e), !d.repeat.Safe", new: "case end.kind == breaker.Reset, !d.mayAttempt(e), !d.repeat.Safe", says: "calls failed, at most 0.5 % may"},
	{row: "F13", bug: "a review is sent again to a webhook with side effects", file: "transport/decision.go",
		old: "case !d.mayAttempt(e), !d.repeat.Safe && !end.unsent:", new: "case !d.mayAttempt(e), !d.repeat.Safe && !end.unsent && !end.broken():", says: "asked-twice"},
	{row: "F13", bug: "the first failure opens a circuit", file: "breaker/settings.go", old: "positive(s.MinRequests, 10)", new: "positive(s.MinRequests, 1)",
		says: "no fault excuses the open breaker"},
	{row: "F14", bug: "an idle connection that was closed is a failure as any other", file: "transport/decision.go",
		old: "case end.stale && !d.redialed:", new: "case end.stale && !d.redialed && false:", says: "failed (Unreachable)"},
	{row: "F15", bug: "answers may be as large as they like", file: "internal/app/parts.go",
		old: "ResponseLimit:  cfg.Limits.ResponseBytes,", new: "ResponseLimit:  1 << 30,", says: "the process grew by"},
	{row: "F15", bug: "an answer may take as long as it likes", file: "transport/exchange.go",
		old: "	until := call.Deadline\n", new: "	until := call.Deadline.Add(time.Minute)\n", says: "late-answer"},
	{row: "F15", bug: "an answer that is cut short is a connection that broke", file: "transport/error.go",
		old: `{isTruncated, hook.BadAnswer, breaker.BadAnswer,`, new: `{isTruncated, hook.Unreachable, breaker.Reset,`, says: "no fault excuses that hurt-ignore.example.com failed (Unreachable)"},
	{row: "F16", bug: "redirects are followed", file: "transport/exchange.go", old: "		end, err = t.receive(r, how)\n	}\n",
		new: `		end, err = t.receive(r, how)
	}
	if err == nil && end.status == fasthttp.StatusTemporaryRedirect {
		called := r.Target
		r.Target = &Target{host: called.host, head: head{line: "POST /elsewhere?timeout=", fields: called.head.fields}}
		if err = t.send(r, toEnd); err == nil {
			t.reader.Reset(t.conn)
			end, err = t.receive(r, toEnd)
		}
		r.Target = called
	}
`, says: "have followed a redirect"},
	noBreaker("F16", "calls failed, at most 70.0 % may"),
	{row: "F17/each", bug: "an answer with status 422 is read", file: "webhook/answer.go", old: "	case !reply.IsSuccess():", new: "	case !reply.IsSuccess() && status != 422:", says: "wrong-allow"},
	{row: "F17/each", bug: "60 ms pass before an HTTP error is noticed", file: "transport/race.go", old: "	if end.pause > 0 {",
		new: "	if end.status >= 400 {\n		time.Sleep(60 * time.Millisecond)\n	}\n	if end.pause > 0 {", says: "answers come late under the fault"},
	noBreaker("F17/open", "calls failed, at most 70.0 % may"),
	{row: "F17/open", bug: "the first failure opens a circuit", file: "breaker/settings.go", old: "positive(s.MinRequests, 10)", new: "positive(s.MinRequests, 1)",
		says: "no fault excuses the open breaker"},
	noBreaker("F18", "while it was down, at most"),
	noRamp("F18", "while it was down, at most"),
	{row: "F18", bug: "nothing is forced while every Endpoint is open", file: "breaker/breaker.go",
		old: "	if !b.remember(cluster, now).forced.enter(now, b.number) {\n", new: "	if true {\n", says: "while it was up: more than 5 %"},
	{row: "F18", bug: "connections that fail open no circuit", file: "breaker/state.go",
		old: " || c.unreachable(now)) {\n", new: ") {\n", says: "connections were tried while circuits were open"},
	noBreaker("F19", "are under way to"),
	noRamp("F19", "are under way to"),
	{row: "F19", bug: "a ramp does not widen", file: "breaker/state.go",
		old: "	if p.successes < p.width {\n", new: "	if true {\n", says: "1 s after the first good probe and later"},
	noBreaker("F20", "wait at a time"),
	{row: "F20", bug: "any number of calls wait", file: "transport/caller.go",
		old: " > maxWaiting {\n", new: " > 100*maxWaiting {\n", says: "wait at a time"},
	{row: "F20", bug: "a half-open circuit lets everybody through", file: "breaker/state.go",
		old: "	if h.probing {\n", new: "	if false {\n", says: "wait at a time"},
	{row: "F20", bug: "whoever may not wait is told 20 ms later", file: "transport/supply.go",
		old: "	return u.waits\n", new: "	if !u.waits {\n		time.Sleep(20 * time.Millisecond)\n	}\n	return u.waits\n", says: "that may not wait are told after"},
	{row: "F20", bug: "an open circuit stays open", file: "breaker/state.go",
		old: "	if now.Before(o.until) {\n", new: "	if true {\n", says: "follows those that hang"},
	forcedAlways("F20"),
	{row: "F21", bug: "an error ends the race", file: "transport/decision.go",
		old: "	case d.running > 0: // an", new: "	case d.running > 0 && end.status != 500: // an", says: "has beaten a verdict"},
	{row: "F21", bug: "a malformed answer ends the race", file: "transport/decision.go",
		old: "	case d.running > 0: // an", new: "	case d.running > 0 && end.status != 200: // an", says: "has beaten a verdict"},
	noBreaker("F21", "calls failed, at most 5.0 % may"),
	{row: "F22/Ignore", bug: "a failed webhook ends the chain", file: "dispatcher/mutate.go", old: "; o.Denies() {",
		new: "; o.Denies() || o.Cause != \"\" {", says: "gave no usable answer, and nothing is said about it"},
	{row: "F22/Fail", bug: "the chain goes on after a failed webhook", file: "dispatcher/mutate.go", old: "; o.Denies() {",
		new: "; o.Denies() && o.Cause == \"\" {", says: "had its turn after a denial"},
	noBreaker("F22/Fail", "calls failed, at most 50.0 % may"),
	{row: "F23", bug: "a webhook for which no time is left allows", file: "dispatcher/policy.go", old: "		o.Result, o.Cause, o.Code = Failed, callErr.Cause, callErr.Cause.Code()",
		new:  "		o.Result, o.Cause, o.Code = Failed, callErr.Cause, callErr.Cause.Code()\n		if callErr.Cause == hook.NoTimeLeft {\n			o.Result, o.Err = Allowed, nil\n		}",
		says: "silent-fail-open"},
	{row: "F24", bug: "names are looked up once", file: "internal/app/app.go",
		old: "	running.Go(func() { a.resolver.Run(a.loops) })\n", new: "", says: "were not called at their new address"},
	{row: "F24", bug: "a name that cannot be looked up has no addresses", file: "transport/resolver.go",
		old: "			list = append(list, t.endpointsOf(o)...)\n", new: "", says: "failed (Unreachable)"},
	{row: "F24", bug: "a name may lead to any address", file: "transport/resolver.go",
		old: "if err := r.cfg.Addresses.Check(at); err != nil {", new: "if err := r.cfg.Addresses.Check(at); err != nil && false {", says: "failed (Unreachable)"},
	{row: "F24", bug: "names are looked up all the time", file: "transport/resolver.go",
		old: "timer.Reset(r.cfg.Interval - time.Duration(rand.Int64N(int64(r.cfg.Interval/10)+1)))", new: "timer.Reset(time.Duration(rand.Int64N(int64(r.cfg.Interval / 10))))", says: "questions to the name server"},
	{row: "F25/Fail", bug: "answers may come 250 ms after the caller has given up", file: "internal/server/handler.go", old: deadline, new: "t += 250 * time.Millisecond", says: "answers come late under the fault"},
	{row: "F25/Fail", bug: "the deadline is that of the caller", file: "internal/server/handler.go", old: deadline, new: "t -= 10 * time.Millisecond", says: "the deadline was 2.85s"},
	{row: "F25/Fail", bug: "a webhook that does not answer has not been called, it is said", file: "transport/error.go",
		old: `{isAnyTimeout, hook.Timeout,`, new: `{isAnyTimeout, hook.NoTimeLeft,`, says: "no fault excuses that hurt-fail.example.com failed (NoTimeLeft)"},
	{row: "F25/Ignore", bug: "answers may come 250 ms after the caller has given up", file: "internal/server/handler.go", old: deadline, new: "t += 250 * time.Millisecond",
		says: "the caller gave up after"},
	{row: "F26", bug: "the memory of a review that is cut short is not given back", file: "internal/server/handler.go",
		old: "	if r := in.receive(e.conn); r != accepted {\n", new: "	if r := in.receive(e.conn); r != accepted {\n		in.taken = false\n", says: "Bodies have not returned"},
	{row: "F26", bug: "a call without a slot leaves a goroutine behind", file: "transport/exchange.go",
		old: "	case how != toSend && !e.slots.acquire(who, call.Deadline):\n", new: "	case how != toSend && !e.slots.acquire(who, call.Deadline):\n		go func() { select {} }()\n", says: "goroutines have not returned"},
	{row: "F26", bug: "a connection to a webhook that hangs is not closed", file: "transport/exchange.go",
		old: "		t.endpoint.drop(t.conn)\n", new: "		e, c := t.endpoint, t.conn\n		time.AfterFunc(time.Hour, func() { e.drop(c) })\n", says: "descriptors have not returned"},
	{row: "F27", bug: "a cluster may take all admissions", file: "internal/app/parts.go",
		old: "PerCluster:  cfg.Limits.AdmissionsPerCluster,", new: "PerCluster:  cfg.Limits.Admissions,", says: "shed: map["},
	{row: "F28", bug: "a stranger has for ever to shake hands", file: "internal/server/conn.go",
		old: "if err := c.SetDeadline(time.Now().Add(c.listener.cfg.HeaderTimeout)); err != nil {", new: "if err := c.SetDeadline(time.Time{}); err != nil {", says: "strangers' connections"},
	{row: "F29", bug: "the serving certificate is never read again", file: "internal/app/certificates.go",
		old: `func (c *certificates) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return c.current.Load().tls, nil`,
		new: `func (c *certificates) config() *tls.Config {
	first := c.current.Load().tls
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return first, nil`, says: "the certificate of the dispatcher: not in use"},
	{row: "F29", bug: "the authorities of callers are never read again", file: "internal/app/certificates.go",
		old: "func (c *certificates) trusted() *trust.Authorities { return c.current.Load().trusted }\n",
		new: `func (c *certificates) trusted() *trust.Authorities {
	if firstTrusted == nil {
		firstTrusted = c.current.Load().trusted
	}
	return firstTrusted
}

var firstTrusted *trust.Authorities
`, says: "the authority of callers: not in use"},
	{row: "F29", bug: "the authorities of webhooks are never read again", file: "registry/compile/credential.go",
		old: readsCA, new: `var firstCA = map[string][]byte{}

func (c *credentials) readCA(at manifest.Origin, name string, path *field.Path) ([]byte, []*x509.Certificate) {
	if name == "" {
		return nil, nil
	}
	bundle, err := c.in.File(at, name)
	if first, ok := firstCA[name]; ok {
		bundle = first
	}
	firstCA[name] = bundle`, says: "the authority of webhooks: not in use"},
	{row: "F29", bug: "an authority of webhooks that is gone is trusted for ever", file: "registry/compile/credential.go",
		old: readsCA, new: `var everyCA = map[string]string{}

func (c *credentials) readCA(at manifest.Origin, name string, path *field.Path) ([]byte, []*x509.Certificate) {
	if name == "" {
		return nil, nil
	}
	bundle, err := c.in.File(at, name)
	if !strings.Contains(everyCA[name], string(bundle)) {
		everyCA[name] += string(bundle)
	}
	bundle = []byte(everyCA[name])`, says: "the authorities of webhooks without the old one: not in use"},
	{row: "F29", bug: "the certificate for webhooks is never read again", file: "registry/compile/credential.go",
		old: `	return &keyPair{string(certificate), string(key)}
}
`, new: `	if firstPair == nil {
		firstPair = &keyPair{string(certificate), string(key)}
	}
	return firstPair
}

var firstPair *keyPair
`, says: "the certificate for webhooks: not in use"},
	{row: "F30", bug: "a source that becomes empty is served", file: "registry/registry.go",
		old: "if r.settings.AllowEmpty || len(in.Problems) > 0 {", new: "if true || len(in.Problems) > 0 {", says: "was not refused"},
	{row: "F30", bug: "nobody is told that the configuration has problems", file: "registry/registry.go",
		old: "	r.problems.Store(&problems)\n	r.settings.Changed(", new: "	r.settings.Changed(", says: "is not seen to have problems"},
	{row: "F31", bug: "whoever logs waits for the sink", file: "internal/logging/log.go",
		old: "slog.NewJSONHandler(l.queue, ", new: "slog.NewJSONHandler(out, ", says: "answers come late while nobody takes telemetry"},
	{row: "F31", bug: "spans that are dropped are not counted", file: "internal/tracing/queue.go",
		old: "		q.waiting.Add(-1)\n		q.dropped.Add(1)\n", new: "		q.waiting.Add(-1)\n", says: "no spans were dropped"},
	{row: "F32", bug: "callers may take all descriptors", file: "internal/app/host.go",
		old: "if half == 0 || configured <= half {", new: "if half != -1 {", says: "5s after the fault and later"},
	noBreaker("F33", "no breaker opened for webhooks that are dead"),
	{row: "F33", bug: "a connection that is refused has timed out", file: "transport/error.go",
		old: `{isDial, hook.Unreachable, breaker.Refused,`, new: `{isDial, hook.Timeout, breaker.Refused,`, says: "no fault excuses that hurt-fail.example.com failed (Timeout)"},
	{row: "F33", bug: "what ends late counts, although this process stood still", file: "transport/result.go",
		old: " && late > stoodStill:\n", new: " && late > 1000*stoodStill:\n", says: "opened by our own pause"},
	{row: "F34", bug: "a process that stops does not tell its callers", file: "internal/server/server.go",
		old: "func (s *Server) LameDuck() { s.lame.Store(true) }", new: "func (s *Server) LameDuck() {}", says: "lost-call"},
	{row: "F34", bug: "a process that stops cuts off what is under way", file: "internal/app/app.go",
		old: "context.WithTimeout(context.Background(), a.cfg.Deadline.Max.Duration+drainMargin)", new: "context.WithTimeout(context.Background(), time.Nanosecond)", says: "lost-call"},
	{row: "F35", bug: "a process takes 2 s until it is ready", file: "internal/app/app.go",
		old: "	running.Go(func() { a.resolver.Run(a.loops) })\n", new: "	<-time.After(2 * time.Second)\n	running.Go(func() { a.resolver.Run(a.loops) })\n", says: "after the start of the process"},
	{row: "F36", bug: "the configuration is never read again", file: "registry/registry.go",
		old: "		r.look(ctx, settleTime)\n", new: "", says: "has had no effect"},
	{row: "F36", bug: "a new Snapshot keeps one webhook of the old", file: "registry/registry.go",
		old: "	// Nothing below this line can fail.\n	served :=", new: `	if current := r.Snapshot(); current != nil && in.Hash < "8" {
		for name, c := range next.Clusters {
			for i, w := range c.Validating.Webhooks {
				for _, before := range current.Clusters[name].Validating.Webhooks {
					if before.Name == w.Name {
						c.Validating.Webhooks[i] = before
					}
				}
			}
		}
		for _, t := range current.Targets {
			if !slices.Contains(next.Targets, t) {
				next.Targets = append(next.Targets, t)
			}
		}
	}
	// Nothing below this line can fail.
	served :=`, says: "has had no effect"},
	{row: "F36", bug: "a reload takes 3 s", file: "registry/registry.go",
		old: "const settleTime = 50 * time.Millisecond", new: "const settleTime = 3 * time.Second", says: "takes effect after"},
	{row: "F36", bug: "the Snapshot of before is served again for a moment", file: "registry/rotation.go",
		old: "		r.previous = append(r.previous, before)\n",
		new: `		r.previous = append(r.previous, before)
		go func() {
			<-time.After(40 * time.Millisecond)
			if r.current.CompareAndSwap(next, before) {
				<-time.After(5 * time.Millisecond)
				r.current.CompareAndSwap(before, next)
			}
		}()
`, says: "one-snapshot"},
	{row: "F36", bug: "a configuration with problems is served", file: "registry/compile/compile.go",
		old: "	if len(d.problems) > 0 {\n		return nil, d.problems, d.warnings\n	}\n", new: "", says: "was not refused"},
	{row: "F37/F1", bug: "60 ms pass before a bypass", file: "dispatcher/dispatcher.go", old: bypassing, new: bypassing + "		time.Sleep(60 * time.Millisecond)\n",
		says: "answers come late without a fault"},
	{row: "F37/F3", bug: "node heartbeats are dispatched", file: "exempt/rule.go", old: `Resources: []string{"/nodes/status"}, Operations`, new: `Resources: []string{"/nodes/proxy"}, Operations`,
		says: "exempt, and"},
	{row: "F37/F27", bug: "what is exempt takes a place of its cluster", file: "dispatcher/dispatcher.go", old: bypassing,
		new: bypassing + `		a := d.newAdmission(ctx, req)
		defer a.release()
		defer func() { a.slot.Release() }()
		if err := a.admit(); err != nil {
			*v = panicked()
			return
		}
`, says: "exempt, and denied"},
	{row: "F38/asking", bug: "a panic before a call ends the admission", file: "dispatcher/ask.go",
		old: "	defer func() { inv.contain(recover()) }()\n", new: "", says: "the dispatcher failed"},
	{row: "F38/attempt", bug: "a panic in an attempt ends the process", file: "transport/race.go",
		old: "		if p := recover(); p != nil {\n", new: "		if p := any(nil); p != nil {\n", says: "lost-call"},
	{row: "F39", bug: "a panic of a plugin ends the process", file: "hook/local.go",
		old: "		if p := recover(); p != nil {\n			resp, err =", new: "		if p := any(nil); p != nil {\n			resp, err =", says: "lost-call"},
	{row: "F40", bug: "a plugin that hangs is waited for", file: "hook/local.go",
		old: "	c.timer = time.AfterFunc(left, func() {", new: "	c.timer = time.AfterFunc(left+time.Minute, func() {", says: "answered after"},
	{row: "F40", bug: "a plugin may hang in any number of calls", file: "hook/local.go",
		old: "	localCalls = 256\n", new: "	localCalls = 1 << 20\n", says: "a plugin hangs in"},
	{row: "F41", bug: "an expression may cost as much as it likes", file: "internal/celenv/scope.go",
		old: "cel.InterruptCheckFrequency(checkFrequency))", new: "cel.InterruptCheckFrequency(checkFrequency), cel.CostLimit(1<<60))", says: "costly gave no usable answer, and nothing is said about it"},
	{row: "F41", bug: "a policy without a result is skipped silently", file: "policy/policy_binding.go",
		old: "	case len(ignored) > 0:\n", new: "	case false:\n", says: "costly gave no usable answer, and nothing is said about it"},
	{row: "F42/params-hang", bug: "who waits for an object waits without an end", file: "registry/kube/lookup.go",
		old: "context.WithTimeout(context.Background(), wait)", new: "context.WithTimeout(context.Background(), wait+time.Hour)", says: "the caller gave up after"},
	{row: "F42/params-hang", bug: "who waits for objects takes no lookup", file: "policy/params.go",
		old: "q.Stored(objects, namespace, p.ref.Name)", new: "objects.Get(namespace, p.ref.Name, q.Deadline)", says: "calls of east wait at once"},
	{row: "F42/params-refused", bug: "params that are not synced are none", file: "policy/params.go",
		old: "		if found == nil {\n			return nil, err\n", new: "		if found == nil {\n			return nil, nil\n", says: "nothing is said about that it has none"},
	{row: "F42/params-listed-endlessly", bug: "what a watch has not brought is not asked for", file: "registry/kube/object_source.go",
		old: "	a, err := o.live.ask(wanted{namespace, name}, deadline)\n", new: "	a, err := answer{}, errUnserved\n", says: "limited failed (Evaluation)"},
	{row: "F42/plugin-hangs", bug: "who waits for objects takes no lookup", file: "hook/inquiry.go",
		old: "	if !admitted || v.Account == nil {\n", new: "	if v != nil {\n", says: "calls of east wait at once"},
	{row: "F43", bug: "who waits for an authorizer waits without an end", file: "registry/kube/authorizer.go",
		old: "context.WithTimeout(context.Background(), wait)", new: "context.WithTimeout(context.Background(), wait+time.Hour)", says: "the caller gave up after"},
	{row: "F43", bug: "the lookups of all clusters are one cluster's", file: "hook/inquiry.go",
		old: "v.Account.LookUp(v.Cluster)", new: "v.Account.LookUp(\"\")", says: "asking failed (Shed)"},
	{row: "F43", bug: "who waits for an authorizer takes no lookup", file: "hook/inquiry.go",
		old: "	if !admitted || v.Account == nil {\n", new: "	if v != nil {\n", says: "calls of east wait at once"},
	{row: "F43", bug: "what an authorizer has not answered is no error", file: "hook/inquiry.go",
		old: "	variables.Answer(asked, status, err)\n", new: "	variables.Answer(asked, status, nil)\n", says: "wrong-deny"},
	{row: "F44/hang", bug: "who waits for the types of a kind waits without an end", file: "registry/kube/kind_source.go",
		old: "	timer := time.NewTimer(wait)\n", new: "	timer := time.NewTimer(wait + time.Hour)\n", says: "the caller gave up after"},
	{row: "F44/hang", bug: "who waits for the types of a kind takes no lookup", file: "policy/merge.go",
		old: "q.Types(cluster, kind.GroupVersion())", new: "cluster.Types(kind.GroupVersion(), q.Deadline)", says: "calls of east wait at once"},
	{row: "F44/hang", bug: "a look at documents may take as long as it likes", file: "registry/kube/kind_source.go",
		old: "context.WithTimeout(ctx, kindsTimeout)", new: "context.WithCancel(ctx)", says: "their kinds are not read"},
	{row: "F44/endless", bug: "a document may be as long as it likes", file: "registry/kube/kind_document.go",
		old: "	left.from = body\n", new: "	left.from, left.left = body, 1<<60\n", says: "calls wait for documents without end"},
	{row: "G1", bug: "a request has room for the object as it was written, not as it is sent", file: "internal/server/server.go",
		old: "DefaultBodyLimit     = 36 << 20", new: "DefaultBodyLimit     = 3 << 20", says: "wrong-deny"},
	{row: "G2", bug: "what fails for one cluster opens the circuit of all", file: "breaker/breaker.go",
		old: "	if !t.reached {\n", new: "	if r == Failure {\n		r, t.reached = ConnectFailure, false\n	}\n	if !t.reached {\n", says: "BreakerOpen"},
	{row: "G3", bug: "a deadline that was too short is a connection that failed", file: "breaker/breaker.go",
		old: "	if !t.reached {\n", new: "	if r == Excluded {\n		r, t.reached = ConnectFailure, false\n	}\n	if !t.reached {\n", says: "circuit is open for every cluster"},
	{row: "G4", bug: "what fails for one cluster opens the circuit of all", file: "breaker/breaker.go",
		old: "	if !t.reached {\n", new: "	if r == Failure {\n		r, t.reached = ConnectFailure, false\n	}\n	if !t.reached {\n", says: "BreakerOpen"},
	{row: "G5", bug: "no cluster makes way for another's connections", file: "internal/server/slots.go",
		old: "	if len(s.open)-len(s.known[\"\"]) > s.limit-s.strangers {\n", new: "	if s.limit < 0 {\n", says: "lost-call"},
	{row: "G6", bug: "no stranger makes way for another", file: "internal/server/slots.go",
		old: "	if len(s.open) >= s.limit {\n		victim = oldest(s.known[\"\"], func(*conn) bool { return true })\n", new: "	if len(s.open) >= s.limit {\n", says: "lost-call"},
	{row: "G7", bug: "a cluster may take all calls of an Endpoint", file: "transport/slot.go",
		old: "slotShare = 3\n", new: "slotShare = 1 << 20\n", says: "failed (Shed)"},
	{row: "G8", bug: "a body has memory for all that is announced", file: "internal/server/body.go",
		old: "	in.data = append(in.buffers.get(), first[0])\n", new: "	in.data = append(slices.Repeat(first[:], c.announced)[:0], first[0])\n", says: "the process grew by"},
	{row: "G9", bug: "what is decompressed is not accounted for", file: "internal/server/body.go",
		old: "		if plain.data = content; !plain.grow(growth * cap(content)) {\n			return nil, errNoMemory\n		}\n",
		new: "		plain.data = append(make([]byte, 0, growth*cap(content)), content...)\n", says: "the process grew by"},
	{row: "G10", bug: "a head may take as long as it likes", file: "internal/server/server.go",
		old: "ReadTimeout:        s.cfg.HeaderTimeout,", new: "ReadTimeout:        1 << 42,", says: "is borne with for"},
	{row: "G10", bug: "a body may take as long as it likes", file: "internal/server/body.go",
		old: "if err := c.Conn.SetReadDeadline(in.until); err != nil {", new: "if err := c.Conn.SetReadDeadline(time.Time{}); err != nil {", says: "is borne with for"},
	{row: "G11", bug: "an answer with status 201 is none", file: "transport/reply.go",
		old: "return r.Status >= http.StatusOK && r.Status <= http.StatusPartialContent", new: "return r.Status == http.StatusOK", says: "failed (HTTPStatus)"},
	{row: "G11", bug: "an answer that says to be a page is none", file: "webhook/answer.go",
		old: "if _, _, err := mime.ParseMediaType(string(kind)); err != nil {", new: "if kind, _, err := mime.ParseMediaType(string(kind)); err != nil || kind == \"text/html\" {", says: "failed (BadAnswer)"},
	{row: "G12", bug: "small objects wait for their turn among the large ones", file: "dispatcher/overload/capacity.go",
		old: "	if size < LightWork {\n", new: "	if size < 0 {\n", says: "answers come late under the fault"},
}

func hedgingOff(row, says string) mutant {
	return mutant{row: row, bug: "no hedging", file: "transport/supply.go",
		old: "	if u.call.Repeat.Safe && !u.call.Repeat.NoHedge && usual < left {\n", new: "	if false {\n", says: says}
}

func noBudget(row, says string) mutant {
	return mutant{row: row, bug: "no budget for hedges", file: "transport/budget.go",
		old: "	if wishes > slowLeast && float64(wishes) > slowShare*float64(first) {\n		return false\n	}\n	return b.spend(now, current)\n",
		new: "	return wishes >= 0 && first >= 0\n", says: says}
}

func noBreaker(row, says string) mutant {
	return mutant{row: row, bug: "no circuit ever opens", file: "breaker/state.go",
		old: "	if r.failed() && (", new: "	if false && r.failed() && (", says: says}
}

func noRamp(row, says string) mutant {
	return mutant{row: row, bug: "a circuit closes after one good probe", file: "breaker/state.go",
		old: "	if s.RampWidth == 1 {\n", new: "	if true {\n", says: says}
}

func forcedAlways(row string) mutant {
	return mutant{row: row, bug: "any number of attempts are forced while a circuit is open", file: "breaker/breaker.go",
		old: "	if !b.remember(cluster, now).forced.enter(now, b.number) {\n", new: "	if b.remember(cluster, now); false {\n", says: "calls failed, at most 30.0 % may"}
}
