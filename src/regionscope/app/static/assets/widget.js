// \0rolldown/runtime.js
var e = (e, t) => () => (t || (e((t = { exports: {} }).exports, t, t.exports), e = null), t.exports), t, n, r, i, a, o, s, c, l, u, d = Symbol.for("pv"), f = {}, p = [], m = /^m(i|n|o|s|text|space)$/, h = Array.isArray, g = p.slice, _ = Object.assign;
function v(e) {
	e && e.parentNode && e.remove();
}
function y(e, r, i, a, o) {
	var s = {
		type: e,
		props: r,
		key: i,
		ref: a,
		__k: null,
		__: null,
		__b: 0,
		__e: null,
		__c: null,
		constructor: d,
		__v: o || ++n,
		__i: -1,
		__u: 0
	};
	return !o && t.vnode && t.vnode(s), s;
}
function b(e) {
	return e.children;
}
function x(e, t) {
	this.props = e, this.context = t, this.__g = 0;
}
function S(e, t) {
	if (t == null) return e.__ && S(e.__, e.__i + 1);
	for (var n; t < e.__k.length; t++) if ((n = e.__k[t]) && n.__e) return n.__e;
	return typeof e.type != "function" || e.props.__P ? null : S(e);
}
function C(e) {
	var n, r = e.__v, i = r.__e, a = [], o = [], s = e.__P;
	s && ((n = _({ constructor: d }, r)).__v = r.__v + 1, t.vnode && t.vnode(n), N(s, n, r, e.__n, s.namespaceURI, 32 & r.__u ? [i] : null, a, i || S(r), 32 & r.__u, o), n.__v = r.__v, n.__.__k[n.__i] = n, P(a, n, o), r.__ = r.__e = null, n.__e != i && w(n));
}
function w(e) {
	if ((e = e.__) && e.__c && !e.props.__P) return e.__e = null, e.__k.some(function(t) {
		return t && (e.__e = t.__e);
	}), w(e);
}
function T(e) {
	(8 & e.__g || (e.__g |= 8, r.push(e), a++)) && i == t.debounceRendering || ((i = t.debounceRendering) || queueMicrotask)(E);
}
function E() {
	try {
		for (var e, t = 1; r.length;) r.length > t && r.sort(o), e = r.shift(), t = r.length, 8 & e.__g && C(e);
	} finally {
		(a = r.length) && (i || queueMicrotask)(E);
	}
}
function D(e, t, n, r, i, a, o, s, c, l, u) {
	var d, m, h, g, _, v, y = r.__k || p, b = t.length;
	for (c = O(n, t, y, c, b), d = 0; d < b; d++) (h = n.__k[d]) != null && (m = ~h.__i && y[h.__i] || f, h.__i = d, v = N(e, h, m, i, a, o, s, c, l, u), g = h.__e, (m.ref != h.ref || 8 & m.__u) && (m.ref && F(m.ref, null, h, m), h.ref && u.push(h.ref, h.__c || g, h)), _ ||= g, 4 & h.__u ? (c = k(h, c, e, !m.__v), m.__e && (m.__e = null)) : typeof h.type == "function" && v !== void 0 ? c = v : g && (c = g.nextSibling), h.__u &= -21);
	return n.__e = _, c;
}
function O(e, t, n, r, i) {
	var a, o, s, c, l, u, f, p, m, g = n.length, _ = g, v = 0, x = 0, C = e.__k = Array(i);
	for (a = 0; a < i; a++) (o = t[a]) != null && typeof o != "boolean" && typeof o != "function" ? (typeof o != "object" || o.constructor === String ? o = C[a] = y(null, o) : h(o) ? o = C[a] = y(b, { children: o }) : o.constructor === d && o.__b ? o = C[a] = y(o.type, o.props, o.key, o.ref, o.__v) : C[a] = o, c = a + v, o.__ = e, o.__b = e.__b + 1, s = null, ~(l = o.__i = A(o, n, c, _)) && (_--, (s = n[l]) && (s.__u |= 2)), s && s.__v ? (o.__u |= 16, l == c - 1 ? v-- : l == c + 1 ? v++ : l != c && (l > c ? v-- : v++, x = 1)) : (~l || (i > g ? v-- : i < g && v++), typeof o.type != "function" && (o.__u |= 4))) : C[a] = null;
	if (x) {
		for (u = [], f = [], a = 0; a < i; a++) if ((o = C[a]) && 16 & o.__u) {
			for (v = 0, p = u.length; v < p;) u[m = v + p >> 1] < o.__i ? v = m + 1 : p = m;
			u[v] = o.__i, f[a] = v + 1;
		}
		for (v = u.length; a--;) f[a] && (f[a] == v ? v-- : C[a].__u |= 4);
	}
	if (_) for (a = 0; a < g; a++) !(s = n[a]) || 2 & s.__u || (s.__e == r && (r = S(s)), I(s, s));
	return r;
}
function k(e, t, n, r) {
	var i, a, o, s;
	if (typeof e.type == "function") {
		if (e.props.__P) return t;
		if (i = e.__k) for (a = 0; a < i.length; a++) i[a] && (i[a].__ = e, t = k(i[a], t, n, !1));
		return t;
	}
	for (t && !t.parentNode && (t = S(e)) && !t.parentNode && (t = null), o = e.__e, s = t; s && s.nodeType == 8;) s = s.nextSibling;
	for (o != s && (!r && n.moveBefore && o.parentNode ? n.moveBefore(o, t) : n.insertBefore(o, t || null)), t = o; (t &&= t.nextSibling) && t.nodeType == 8 && !t.data.startsWith("$s"););
	return t;
}
function A(e, t, n, r) {
	var i, a = e.key, o = e.type, s = t[n], c = s && !(2 & s.__u);
	if (s === null && a == null || c && a == s.key && o == s.type) return n;
	if (r > +!!c) {
		for (i = n - 1; i >= 0; i--) if ((s = t[i]) && !(2 & s.__u) && a == s.key && o == s.type) return i;
		for (i = n + 1; i < t.length; i++) if ((s = t[i]) && !(2 & s.__u) && a == s.key && o == s.type) return i;
	}
	return -1;
}
function j(e, t, n) {
	n ??= "", t[0] == "-" ? e.setProperty(t, n) : e[t] = n;
}
function M(e, t, n, r, i) {
	var a, o;
	if (t == "style") {
		if (typeof n == "string") e.style.cssText = n;
		else {
			if (typeof r == "string" && (e.style.cssText = r = ""), r) for (t in r) n && t in n || j(e.style, t);
			if (n) for (t in n) r && n[t] == r[t] || j(e.style, t, n[t]);
		}
	} else if (t[0] == "o" && t[1] == "n") typeof n != "function" && (n = null), typeof r != "function" && (r = null), (e.__e ||= {})[t] = n, n && r || (o = u[t] || (u[t] = ee(t)), (e.__a ||= {})[t] = l, a = t != (t = t.replace(c, "$1")), (t = t.slice(2))[0] < "a" && (t = t.toLowerCase()), n ? e.addEventListener(t, o, a) : e.removeEventListener(t, o, a));
	else {
		if (i == "http://www.w3.org/2000/svg") t = t.replace(/xlink(H|:h)/, "h").replace(/sName$/, "s");
		else if (t != "width" && t != "height" && t != "href" && t != "list" && t != "form" && t != "tabIndex" && t != "download" && t != "rowSpan" && t != "colSpan" && t != "role" && t != "popover" && t in e) try {
			e[t] = n ?? "";
			return;
		} catch {}
		if (typeof n == "function") return;
		n == null || !1 === n && t[4] != "-" ? e.removeAttribute(t) : e.setAttribute(t, t == "popover" && n == 1 ? "" : n);
	}
}
function ee(e) {
	return function(n) {
		var r = this.__e;
		if (r) {
			if (r = r[e], n[s] == null) n[s] = l++;
			else if (n[s] < this.__a[e]) return;
			return r(t.event ? t.event(n) : n);
		}
	};
}
function N(e, n, r, i, a, o, s, c, l, u) {
	var f, m, g, y, C, w, T, E, O, k, A, j, M, ee, N, P, F, L, R = n.type;
	if (n.constructor !== d) return null;
	128 & r.__u && (l = 32 & r.__u, f = r.__c.__z) && (n.__u |= l, m = o = [], f.nodeType == 8 ? c = te(f, o) : o.push(f), c = o[0] || c), (f = t.__b) && f(n);
	n: if (typeof R == "function") {
		g = s.length;
		try {
			if (E = n.props, O = (f = R.prototype) && f.render, k = (f = R.contextType) && i[f.__c], A = f ? k ? k.props.value : f.__ : i, (y = r.__c) ? (n.__c = y, 2 & y.__g && (y.__g |= 1)) : (O ? n.__c = y = new R(E, A) : (n.__c = y = new x(E, A), y.constructor = R, y.render = ie), k && k.sub(y), y.state || (y.state = {}), y.__n = i, y.__g |= 8, y.__h = [], y.__k = []), O && (y.__s || (y.__s = y.state), R.getDerivedStateFromProps && (y.__s == y.state && (y.__s = _({}, y.__s)), _(y.__s, R.getDerivedStateFromProps(E, y.__s)))), C = y.props, w = y.state, y.__v = n, r.__c) {
				if (E !== C && O && !R.getDerivedStateFromProps && y.componentWillReceiveProps && y.componentWillReceiveProps(E, A), n.__v == r.__v && !(8 & y.__g) || !(4 & y.__g) && y.shouldComponentUpdate && !1 === y.shouldComponentUpdate(E, y.__s, A)) {
					n.__v != r.__v && (y.props = E, y.state = y.__s, y.__g &= -9), n.__e = r.__e, n.__k = r.__k, n.__k.some(function(e) {
						e && (e.__ = n);
					}), p.push.apply(y.__h, y.__k), y.__k = [], y.__h.length && s.push(y), c = S(r);
					break n;
				}
				y.componentWillUpdate && y.componentWillUpdate(E, y.__s, A), O && y.componentDidUpdate && y.__h.push(function() {
					y.componentDidUpdate(C, w, T);
				});
			} else O && !R.getDerivedStateFromProps && y.componentWillMount && y.componentWillMount(), O && y.componentDidMount && y.__h.push(y.componentDidMount);
			y.context = A, y.props = E, y.__P = e, y.__g &= -5, j = t.__r, M = O ? 25 : 0;
			do
				y.__g &= -9, j && j(n), f = y.render(y.props, y.state = y.__s, y.context);
			while (8 & y.__g && ++M < 25);
			O && (p.push.apply(y.__h, y.__k), y.__k = []), y.state = y.__s, y.getChildContext && (i = _({}, i, y.getChildContext())), O && r.__c && y.getSnapshotBeforeUpdate && (T = y.getSnapshotBeforeUpdate(C, w)), ee = f && f.type === b && f.key == null ? f.props.children : f, E.__P && (f = c, a = (e = E.__P).namespaceURI, l = o = null, r.props && r.props.__P != e && (r.__k.some(function(e) {
				e && I(e, e);
			}), r.__k = null), c = r.__k ? S(r, 0) : null), c = D(e, h(ee) ? ee : [ee], n, r, i, a, o, s, c, l, u), E.__P && (n.__e = null, c = f), n.__u &= -161, m && m.some(v), y.__h.length && s.push(y), 1 & y.__g && (y.__g &= -4);
		} catch (e) {
			if (s.length = g, n.__v = null, l || o) {
				if (e && e.then) {
					if (n.__u |= 128 | l, o) {
						for (~(F = o.indexOf(c || void 0)) || (F = o.length); (L = o[F - 1]) && L.nodeType == 8;) F--;
						for (; F < o.length; F++) if (L = o[F]) {
							if (o[F] = null, N) {
								if (L == P) break;
							} else {
								if (L.nodeType != 8) break;
								L.data.startsWith("$s") && (P = te(N = L));
							}
						}
					}
					if (!N) {
						for (; c && c.nodeType == 8 && c.nextSibling;) c = c.nextSibling;
						N = c;
					}
					(f = te(N = n.__c.__z || (n.__c.__z = N))) ? (n.__e = N, c = f) : n.__e = c, c &&= c.nextSibling;
				} else o && o.some(v);
			} else n.__e = r.__e;
			n.__k ||= r.__k || [], e && e.then || ne(n), t.__e(e, n, r);
		}
	} else c = n.__e = re(r.__e, n, r, i, a, o, s, l, u, e);
	return (f = t.diffed) && f(n), c;
}
function te(e, t) {
	if (e && e.nodeType == 8 && e.data.startsWith("$s")) for (var n = 1; e = e.nextSibling;) {
		if (e.nodeType == 8) {
			if (e.data.startsWith("$s")) n++;
			else if (e.data.startsWith("/$s") && !--n) return e;
		}
		t && t.push(e);
	}
}
function ne(e) {
	e && (e.__c && (e.__c.__g |= 4), e.__k && e.__k.some(ne));
}
function P(e, n, r) {
	for (var i = 0; i < r.length;) F(r[i++], r[i++], r[i++]);
	t.__c && t.__c(n, e), e.some(function(n) {
		try {
			e = n.__h, n.__h = [], e.some(function(e) {
				e.call(n);
			});
		} catch (e) {
			t.__e(e, n.__v);
		}
	});
}
function re(e, n, r, i, a, o, s, c, l, u) {
	var d, p, _, y, b, x, C, w, T = r.props || f, E = n.props, O = n.type;
	if (O == "svg" ? a = "http://www.w3.org/2000/svg" : O == "math" ? a = "http://www.w3.org/1998/Math/MathML" : a ||= "http://www.w3.org/1999/xhtml", o) {
		for (d = 0; d < o.length; d++) if ((b = o[d]) && (O ? b.localName == O : b.nodeType == 3)) {
			e = b, o[d] = null;
			break;
		}
	}
	if (!e) {
		if (w = u.ownerDocument || document, !O) return w.createTextNode(E);
		e = w.createElementNS(a, O, E.is ? E : u), c &&= (t.__m && t.__m(n, o), !1), o = null;
	}
	if (O) {
		if (u = O == "template" && e.content || e, o = O == "textarea" && E.defaultValue != null ? null : o && g.call(u.childNodes), !c && o) for (T = {}, d = 0; d < e.attributes.length; d++) T[(b = e.attributes[d]).name] = b.value;
		for (d in T) b = T[d], d == "dangerouslySetInnerHTML" ? _ = b : d == "children" || d in E || d == "value" && "defaultValue" in E || d == "checked" && "defaultChecked" in E || M(e, d, null, b, a);
		for (d in E) b = E[d], d == "children" ? y = b : d == "dangerouslySetInnerHTML" ? p = b : d == "value" ? x = b : d == "checked" ? C = b : c && typeof b != "function" || T[d] === b || M(e, d, b, T[d], a);
		p ? (c || _ && (p.__html == _.__html || p.__html == e.innerHTML) || (e.innerHTML = p.__html), n.__k = []) : (_ && (e.textContent = ""), (O == "foreignObject" || a == "http://www.w3.org/1998/Math/MathML" && m.test(O)) && (a = "http://www.w3.org/1999/xhtml"), D(u, h(y) ? y : [y], n, r, i, a, o, s, o ? o[0] : r.__k && S(r, 0), c, l), o && o.some(v)), c && O != "textarea" || (d = "value", O == "progress" && x == null ? e.removeAttribute(d) : x == null || x === e[d] && (O != "progress" || x) || M(e, d, x, T[d], a), d = "checked", C != null && C != e[d] && M(e, d, C, T[d], a));
	} else T === E || c && e.data == E || (e.data = E);
	return e;
}
function F(e, n, r, i) {
	try {
		typeof e == "function" ? n ? n.__x = e(n) || 1 : (i &&= i.__c || i.__e) && (n = i.__x) && (i.__x = null, typeof n == "function" ? n() : e(null)) : e.current = n;
	} catch (e) {
		t.__e(e, r);
	}
}
function I(e, n, r) {
	var i, a, o, s;
	if (t.unmount && t.unmount(e), !(i = e.ref) || i.current && i.current != e.__e || F(i, null, n, e), i = e.__c) {
		if (i.componentWillUnmount) try {
			i.componentWillUnmount();
		} catch (e) {
			t.__e(e, n);
		}
		i.__P = i.__n = null;
	}
	if (i = e.__k) for (s = 0; s < i.length; s++) i[s] && I(i[s], n, typeof e.type != "function" || r && !e.props.__P);
	!r && (i = e.__c) && (i = i.__z) && (a = te(i, o = [])) && (i == e.__e && o.some(v), v(a), v(i)), r || v(e.__e), e.__e = e.__c = e.__ = null;
}
function ie(e, t, n) {
	return this.constructor(e, n);
}
function L(e, n) {
	var r, i, a, o;
	t.__ && t.__(e, n), n.nodeType == 9 && (n = n.documentElement), i = (r = e && 32 & e.__u) ? null : n.__k, n.__k = y(b, { children: [e] }), a = [], o = [], N(n, n.__k, i || f, f, n.namespaceURI, i ? null : n.firstChild ? g.call(n.childNodes) : null, a, i ? i.__e : n.firstChild, r, o), P(a, n.__k, o), n.__k.props.children = null;
}
t = { __e: function(e, t, n, r) {
	for (var i, o, s; t = t.__;) if ((i = t.__c) && !(1 & i.__g)) {
		i.__g |= 4;
		try {
			if ((s = (o = i.constructor) && o.getDerivedStateFromError) && i.setState(o.getDerivedStateFromError(e)), i.componentDidCatch && (i.componentDidCatch(e, r || {}), s = 1), s && 8 & i.__g) return void (i.__g |= 2);
		} catch (t) {
			e = t;
		}
	}
	throw a = 0, e;
} }, n = 0, x.prototype.setState = function(e, t) {
	var n = this.__s;
	n && n != this.state || (n = this.__s = _({}, this.state)), typeof e == "function" && (e = e(_({}, n), this.props)), e && (_(n, e), this.__v && (t && this.__k.push(t), T(this)));
}, x.prototype.forceUpdate = function(e) {
	this.__v && (this.__g |= 4, e && this.__h.push(e), T(this));
}, x.prototype.render = b, r = [], a = 0, o = function(e, t) {
	return e.__v.__b - t.__v.__b;
}, s = Symbol(), c = /(PointerCapture)$|Capture$/i, l = 0, u = {};
// node_modules/preact/hooks/dist/hooks.mjs
var R, z, ae, oe, se = Object.is, ce = 0, le = [], ue = [], de = t, fe = de.__b, pe = de.__r, me = de.diffed, he = de.__c, ge = de.unmount, _e = de.__;
function ve(e, t) {
	de.__h && de.__h(z, e, ce || t), ce = 0;
	var n = z.__H || (z.__H = {
		__: [],
		__h: []
	});
	return e >= n.__.length && n.__.push({}), n.__[e];
}
function B(e) {
	return ce = 1, V(ke, e);
}
function V(e, t, n) {
	var r = ve(R++, 2);
	if (r.t = e, !r.__c && (r.__ = [n ? n(t) : ke(void 0, t), function(e) {
		var t = (r.__N || r.__)[0], n = r.t(t, e);
		se(t, n) || (r.__N = [n, r.__[1]], r.__c.setState({}));
	}], r.__c = z, !z.__f)) {
		z.__f = !0;
		var i = z.shouldComponentUpdate;
		z.shouldComponentUpdate = function(e, t, n) {
			var r = this.__H;
			if (!r) return !0;
			var a = !1, o = this.props != e;
			if (r.__.some(function(e) {
				e.__N && (a = !0, se(e.__[0], e.__N[0]) || (o = !0));
			}), i) {
				var s = i.call(this, e, t, n);
				return a ? s || o : s;
			}
			return !a || o;
		};
	}
	return r.__;
}
function H(e, t) {
	var n = ve(R++, 3);
	!de.__s && Oe(n.__H, t) && (n.__P = !0, n.__ = e, n.u = t, z.__H.__h.push(n));
}
function ye(e, t) {
	var n = ve(R++, 4);
	!de.__s && Oe(n.__H, t) && (n.__P = !1, n.__ = e, n.u = t, z.__h.push(n));
}
function U(e) {
	return ce = 5, be(function() {
		return { current: e };
	}, []);
}
function be(e, t) {
	var n = ve(R++, 7);
	return Oe(n.__H, t) && (n.__ = e(), n.__H = t), n.__;
}
function xe(e, t) {
	return ce = 8, be(function() {
		return e;
	}, t);
}
function Se() {
	var e;
	do {
		for (; e = ue.shift();) try {
			Ee(e);
		} catch (t) {
			de.__e(t, { __: (e = e.__P) && e.__v });
		}
		for (; e = le.shift();) {
			var t = e.__H;
			if (e.__P && t) try {
				t.__h.some(Ee), t.__h.some(De), t.__h = [];
			} catch (n) {
				t.__h = [], de.__e(n, e.__v);
			}
		}
	} while (ue.length);
}
de.__b = function(e) {
	z = null, fe && fe(e);
}, de.__ = function(e, t) {
	e && t.__k && t.__k.__m && (e.__m = t.__k.__m), _e && _e(e, t);
}, de.__r = function(e) {
	pe && pe(e), R = 0;
	var t = (z = e.__c).__H;
	t && (ae == z ? z.__h = [] : (t.__h.some(Ee), t.__h.some(De), R = 0), t.__h = [], t.__.some(function(e) {
		e.__N && (e.__ = e.__N), e.u = e.__N = void 0;
	})), ae = z;
}, de.diffed = function(e) {
	me && me(e);
	var t = e.__c;
	t && t.__H && (t.__H.__h.length && Te(le.push(t)), t.__H.__.some(function(e) {
		e.u && (e.__H = e.u);
	})), ae = z = null;
}, de.__c = function(e, t) {
	t.some(function(e) {
		try {
			e.__h.some(Ee), e.__h = e.__h.filter(function(e) {
				return !e.__ || De(e);
			});
		} catch (t) {
			e.__h = [function() {
				throw t;
			}];
		}
	}), he && he(e, t);
}, de.unmount = function(e) {
	ge && ge(e);
	var t, n, r = e.__c;
	r && r.__H && (r.__H.__.some(function(r) {
		try {
			if (r.__P && r.__c) {
				if (n === void 0) {
					for (n = e.__; n && (!n.__c || !n.__c.__P);) n = n.__;
					n &&= n.__c;
				}
				r.__P = n, Te(ue.push(r));
			} else Ee(r);
		} catch (e) {
			t = e;
		}
	}), r.__H = void 0, t && de.__e(t, r.__v));
};
var Ce = typeof requestAnimationFrame == "function";
function we(e) {
	var t, n = function() {
		clearTimeout(r), Ce && cancelAnimationFrame(t), setTimeout(e);
	}, r = setTimeout(n, 35);
	Ce && (t = requestAnimationFrame(n));
}
function Te(e) {
	e != 1 && oe == de.requestAnimationFrame || ((oe = de.requestAnimationFrame) || we)(Se);
}
function Ee(e) {
	var t = z, n = e.__c;
	typeof n == "function" && (e.__c = void 0, n()), z = t;
}
function De(e) {
	var t = z;
	e.__c = e.__(), z = t;
}
function Oe(e, t) {
	return !e || e.length != t.length || t.some(function(t, n) {
		return !se(t, e[n]);
	});
}
function ke(e, t) {
	return typeof t == "function" ? t(e) : t;
}
// src/protocol.ts
var Ae = {
	float32: Float32Array,
	float64: Float64Array,
	int32: Int32Array,
	uint32: Uint32Array,
	int16: Int16Array,
	uint16: Uint16Array,
	uint8: Uint8Array
};
function je(e) {
	let t = new DataView(e);
	if (e.byteLength < 8 || t.getUint32(0, !1) !== 1381193777) throw Error("this is no block of the explorer");
	let n = t.getUint32(4, !0), { arrays: r, ...i } = JSON.parse(new TextDecoder().decode(new Uint8Array(e, 8, n))), a = { ...i };
	for (let [t, { type: n, shape: i, offset: o }] of Object.entries(r)) n in Ae && (a[t] = new Ae[n](e, o, i.reduce((e, t) => e * t, 1)));
	return a;
}
// src/transport.ts
var Me = class extends Error {
	status;
	kind;
	constructor(e, t, n) {
		super(n), this.status = e, this.kind = t;
	}
};
function Ne(e, t) {
	let n = Object.entries(t).filter((e) => e[1] !== void 0).sort(([e], [t]) => e < t ? -1 : 1).map(([e, t]) => `${e}=${encodeURIComponent(String(t))}`);
	return n.length ? `${e}?${n.join("&")}` : e;
}
async function Pe(e, t, n = {}) {
	return JSON.parse(new TextDecoder().decode(await e.ask(t, n)));
}
async function Fe(e, t, n, r) {
	return je(await e.ask(t, n, r));
}
async function Ie(e, t) {
	return je(await e.ask("/api/points", t));
}
function Le(e, t) {
	try {
		let { error: n } = JSON.parse(new TextDecoder().decode(t));
		return new Me(e, n.kind, n.message);
	} catch {
		return new Me(e, "fault", `the server answered ${e}`);
	}
}
function Re(e) {
	let t = /* @__PURE__ */ new Map(), n = 0;
	e.on("msg:custom", ({ id: e, status: n }, r) => {
		let i = t.get(e);
		if (!i || !r[0]) return;
		t.delete(e);
		let a = r[0], o = a.buffer.slice(a.byteOffset, a.byteOffset + a.byteLength);
		n === 200 ? i[0](o) : i[1](Le(n, o));
	});
	let r = (r, i, a) => new Promise((o, s) => {
		let c = ++n;
		t.set(c, [o, s]), a?.addEventListener("abort", () => {
			t.delete(c), s(new DOMException("superseded", "AbortError"));
		}), e.send({
			id: c,
			ask: Ne(r, i)
		});
	});
	return {
		ask: r,
		async picture(e, t) {
			try {
				return URL.createObjectURL(new Blob([await r(e, t)], { type: "image/png" }));
			} catch {
				return null;
			}
		},
		follow: () => () => void 0
	};
}
// src/answers.ts
function ze(e, t) {
	let [n, r] = B({
		value: null,
		error: null
	});
	return H(() => {
		if (e === null) return r({
			value: null,
			error: null
		});
		let n = !0;
		return t().then((e) => n && r({
			value: e,
			error: null
		}), (e) => n && r({
			value: null,
			error: e.message
		})), () => void (n = !1);
	}, [e]), n;
}
function Be(e, t, n, r = "") {
	return ze(n && `${t} ${JSON.stringify(n)} ${r}`, () => Pe(e, t, n));
}
function Ve(e) {
	let t = Be(e, "/api/runs", {}), [n, r] = B(/* @__PURE__ */ new Map());
	return H(() => {
		if (!t.value?.live) return;
		let n = (e, t) => r((n) => new Map(n).set(e, t));
		return e.follow((e) => n(e.id, e), (e) => n(e, null));
	}, [t.value?.live]), t.value ? {
		value: {
			...t.value,
			runs: He(t.value.runs, n)
		},
		error: null
	} : t;
}
function He(e, t) {
	let n = new Set(e.map((e) => e.id)), r = [...t.values()].filter((e) => e !== null && !n.has(e.id));
	return [...e.map((e) => t.has(e.id) ? t.get(e.id) : e).filter(Boolean), ...r];
}
// node_modules/uplot/dist/uPlot.esm.js
var Ue = !0, We = "uplot", Ge = "u-hz", Ke = "u-vt", qe = "u-title", Je = "u-wrap", Ye = "u-under", Xe = "u-over", Ze = "u-axis", Qe = "u-off", $e = "u-select", et = "u-cursor-x", tt = "u-cursor-y", nt = "u-cursor-pt", rt = "u-legend", it = "u-live", at = "u-inline", ot = "u-series", st = "u-marker", ct = "u-label", lt = "u-value", ut = "width", dt = "height", ft = "top", pt = "bottom", mt = "left", ht = "right", gt = "#000", _t = "#0000", vt = "mousemove", yt = "mousedown", bt = "mouseup", xt = "mouseenter", St = "mouseleave", Ct = "dblclick", wt = "resize", Tt = "scroll", Et = "change", Dt = "dppxchange", Ot = "--", kt = typeof window < "u", At = kt ? document : null, jt = kt ? window : null, Mt = kt ? navigator : null, W, Nt;
function Pt() {
	let e = devicePixelRatio;
	W != e && (W = e, Nt && Jt(Et, Nt, Pt), Nt = matchMedia(`(min-resolution: ${W - .001}dppx) and (max-resolution: ${W + .001}dppx)`), qt(Et, Nt, Pt), jt.dispatchEvent(new CustomEvent(Dt)));
}
function Ft(e, t) {
	if (t != null) {
		let n = e.classList;
		!n.contains(t) && n.add(t);
	}
}
function It(e, t) {
	let n = e.classList;
	n.contains(t) && n.remove(t);
}
function G(e, t, n) {
	e.style[t] = n + "px";
}
function Lt(e, t, n, r) {
	let i = At.createElement(e);
	return t != null && Ft(i, t), n?.insertBefore(i, r), i;
}
function Rt(e, t) {
	return Lt("div", e, t);
}
var zt = /* @__PURE__ */ new WeakMap();
function Bt(e, t, n, r, i) {
	let a = "translate(" + t + "px," + n + "px)";
	a != zt.get(e) && (e.style.transform = a, zt.set(e, a), t < 0 || n < 0 || t > r || n > i ? Ft(e, Qe) : It(e, Qe));
}
var Vt = /* @__PURE__ */ new WeakMap();
function Ht(e, t, n) {
	let r = t + n;
	r != Vt.get(e) && (Vt.set(e, r), e.style.background = t, e.style.borderColor = n);
}
var Ut = /* @__PURE__ */ new WeakMap();
function Wt(e, t, n, r) {
	let i = t + "" + n;
	i != Ut.get(e) && (Ut.set(e, i), e.style.height = n + "px", e.style.width = t + "px", e.style.marginLeft = r ? -t / 2 + "px" : 0, e.style.marginTop = r ? -n / 2 + "px" : 0);
}
var Gt = { passive: !0 }, Kt = {
	...Gt,
	capture: !0
};
function qt(e, t, n, r) {
	t.addEventListener(e, n, r ? Kt : Gt);
}
function Jt(e, t, n, r) {
	t.removeEventListener(e, n, Gt);
}
kt && Pt();
function Yt(e, t, n, r) {
	let i;
	n ||= 0, r ||= t.length - 1;
	let a = r <= 2147483647;
	for (; r - n > 1;) i = a ? n + r >> 1 : _n((n + r) / 2), t[i] < e ? n = i : r = i;
	return e - t[n] <= t[r] - e ? n : r;
}
function Xt(e) {
	return (t, n, r) => {
		let i = -1, a = -1;
		for (let a = n; a <= r; a++) if (e(t[a])) {
			i = a;
			break;
		}
		for (let i = r; i >= n; i--) if (e(t[i])) {
			a = i;
			break;
		}
		return [i, a];
	};
}
var Zt = (e) => e != null, Qt = (e) => e != null && e > 0, $t = Xt(Zt), en = Xt(Qt);
function tn(e, t, n, r = 0, i = !1) {
	let a = i ? en : $t, o = i ? Qt : Zt;
	[t, n] = a(e, t, n);
	let s = e[t], c = e[t];
	if (t > -1) {
		if (r == 1) s = e[t], c = e[n];
		else if (r == -1) s = e[n], c = e[t];
		else for (let r = t; r <= n; r++) {
			let t = e[r];
			o(t) && (t < s ? s = t : t > c && (c = t));
		}
	}
	return [s ?? On, c ?? -On];
}
function nn(e, t, n, r) {
	let i = Cn(e), a = Cn(t);
	e == t && (i == -1 ? (e *= n, t /= n) : (e /= n, t *= n));
	let o = n == 10 ? wn : Tn, s = i == 1 ? _n : yn, c = a == 1 ? yn : _n, l = s(o(gn(e))), u = c(o(gn(t))), d = Sn(n, l), f = Sn(n, u);
	return n == 10 && (l < 0 && (d = J(d, -l)), u < 0 && (f = J(f, -u))), r || n == 2 ? (e = d * i, t = f * a) : (e = Hn(e, d), t = Vn(t, f)), [e, t];
}
function rn(e, t, n, r) {
	let i = nn(e, t, n, r);
	return e == 0 && (i[0] = 0), t == 0 && (i[1] = 0), i;
}
var an = .1, on = {
	mode: 3,
	pad: an
}, sn = {
	pad: 0,
	soft: null,
	mode: 0
}, cn = {
	min: sn,
	max: sn
};
function ln(e, t, n, r) {
	return $n(n) ? dn(e, t, n) : (sn.pad = n, sn.soft = r ? 0 : null, sn.mode = r ? 3 : 0, dn(e, t, cn));
}
function K(e, t) {
	return e ?? t;
}
function un(e, t, n) {
	for (t = K(t, 0), n = K(n, e.length - 1); t <= n;) {
		if (e[t] != null) return !0;
		t++;
	}
	return !1;
}
function dn(e, t, n) {
	let r = n.min, i = n.max, a = K(r.pad, 0), o = K(i.pad, 0), s = K(r.hard, -On), c = K(i.hard, On), l = K(r.soft, On), u = K(i.soft, -On), d = K(r.mode, 0), f = K(i.mode, 0), p = t - e, m = wn(p), h = xn(gn(e), gn(t)), g = gn(wn(h) - m);
	(p < 1e-24 || g > 10) && (p = 0, (e == 0 || t == 0) && (p = 1e-24, d == 2 && l != On && (a = 0), f == 2 && u != -On && (o = 0)));
	let _ = p || h || 1e3, v = Sn(10, _n(wn(_))), y = J(Hn(e - _ * (p == 0 ? e == 0 ? .1 : 1 : a), v / 10), 24), b = e >= l && (d == 1 || d == 3 && y <= l || d == 2 && y >= l) ? l : On, x = xn(s, y < b && e >= b ? b : bn(b, y)), S = J(Vn(t + _ * (p == 0 ? t == 0 ? .1 : 1 : o), v / 10), 24), C = t <= u && (f == 1 || f == 3 && S >= u || f == 2 && S <= u) ? u : -On, w = bn(c, S > C && t <= C ? C : xn(C, S));
	return x == w && x == 0 && (w = 100), [x, w];
}
var fn = new Intl.NumberFormat(kt ? Mt.language : "en-US"), pn = (e) => fn.format(e), mn = Math, hn = mn.PI, gn = mn.abs, _n = mn.floor, vn = mn.round, yn = mn.ceil, bn = mn.min, xn = mn.max, Sn = mn.pow, Cn = mn.sign, wn = mn.log10, Tn = mn.log2, En = (e, t = 1) => mn.sinh(e) * t, Dn = (e, t = 1) => mn.asinh(e / t), On = Infinity;
function kn(e) {
	return (wn((e ^ e >> 31) - (e >> 31)) | 0) + 1;
}
function An(e, t, n) {
	return bn(xn(e, t), n);
}
function jn(e) {
	return typeof e == "function";
}
function q(e) {
	return jn(e) ? e : () => e;
}
var Mn = () => {}, Nn = (e) => e, Pn = (e, t) => t, Fn = (e) => null, In = (e) => !0, Ln = (e, t) => e == t, Rn = /\.\d*?(?=9{6,}|0{6,})/gm, zn = (e) => {
	if (Xn(e) || Un.has(e)) return e;
	let t = `${e}`, n = t.match(Rn);
	if (n == null) return e;
	let r = n[0].length - 1;
	if (t.indexOf("e-") != -1) {
		let [e, n] = t.split("e");
		return +`${zn(e)}e${n}`;
	}
	return J(e, r);
};
function Bn(e, t) {
	return zn(J(zn(e / t)) * t);
}
function Vn(e, t) {
	return zn(yn(zn(e / t)) * t);
}
function Hn(e, t) {
	return zn(_n(zn(e / t)) * t);
}
function J(e, t = 0) {
	if (Xn(e)) return e;
	let n = 10 ** t;
	return vn(e * n * (1 + 2 ** -52)) / n;
}
var Un = /* @__PURE__ */ new Map();
function Wn(e) {
	return (("" + e).split(".")[1] || "").length;
}
function Gn(e, t, n, r) {
	let i = [], a = r.map(Wn);
	for (let o = t; o < n; o++) {
		let t = gn(o), n = J(Sn(e, o), t);
		for (let s = 0; s < r.length; s++) {
			let c = e == 10 ? +`${r[s]}e${o}` : r[s] * n, l = (o >= 0 ? 0 : t) + (o >= a[s] ? 0 : a[s]), u = e == 10 ? c : J(c, l);
			i.push(u), Un.set(u, l);
		}
	}
	return i;
}
var Kn = {}, qn = [], Jn = [null, null], Yn = Array.isArray, Xn = Number.isInteger, Zn = (e) => e === void 0;
function Qn(e) {
	return typeof e == "string";
}
function $n(e) {
	let t = !1;
	if (e != null) {
		let n = e.constructor;
		t = n == null || n == Object;
	}
	return t;
}
function er(e) {
	return typeof e == "object" && !!e;
}
var tr = Object.getPrototypeOf(Uint8Array), nr = "__proto__";
function rr(e, t = $n) {
	let n;
	if (Yn(e)) {
		let r = e.find((e) => e != null);
		if (Yn(r) || t(r)) {
			n = Array(e.length);
			for (let r = 0; r < e.length; r++) n[r] = rr(e[r], t);
		} else n = e.slice();
	} else if (e instanceof tr) n = e.slice();
	else if (t(e)) {
		n = {};
		for (let r in e) r != nr && (n[r] = rr(e[r], t));
	} else n = e;
	return n;
}
function ir(e) {
	let t = arguments;
	for (let n = 1; n < t.length; n++) {
		let r = t[n];
		for (let t in r) t != nr && ($n(e[t]) ? ir(e[t], rr(r[t])) : e[t] = rr(r[t]));
	}
	return e;
}
var ar = 0, or = 1, sr = 2;
function cr(e, t, n) {
	for (let r = 0, i, a = -1; r < t.length; r++) {
		let o = t[r];
		if (o > a) {
			for (i = o - 1; i >= 0 && e[i] == null;) e[i--] = null;
			for (i = o + 1; i < n && e[i] == null;) e[a = i++] = null;
		}
	}
}
function lr(e, t) {
	if (fr(e)) {
		let t = e[0].slice();
		for (let n = 1; n < e.length; n++) t.push(...e[n].slice(1));
		return pr(t[0]) || (t = dr(t)), t;
	}
	let n = /* @__PURE__ */ new Set();
	for (let t = 0; t < e.length; t++) {
		let r = e[t][0], i = r.length;
		for (let e = 0; e < i; e++) n.add(r[e]);
	}
	let r = [Array.from(n).sort((e, t) => e - t)], i = r[0].length, a = /* @__PURE__ */ new Map();
	for (let e = 0; e < i; e++) a.set(r[0][e], e);
	for (let n = 0; n < e.length; n++) {
		let o = e[n], s = o[0];
		for (let e = 1; e < o.length; e++) {
			let c = o[e], l = Array(i).fill(void 0), u = t ? t[n][e] : or, d = [];
			for (let e = 0; e < c.length; e++) {
				let t = c[e], n = a.get(s[e]);
				t === null ? u != ar && (l[n] = t, u == sr && d.push(n)) : l[n] = t;
			}
			cr(l, d, i), r.push(l);
		}
	}
	return r;
}
var ur = typeof queueMicrotask > "u" ? (e) => Promise.resolve().then(e) : queueMicrotask;
function dr(e) {
	let t = e[0], n = t.length, r = Array(n);
	for (let e = 0; e < r.length; e++) r[e] = e;
	r.sort((e, n) => t[e] - t[n]);
	let i = [];
	for (let t = 0; t < e.length; t++) {
		let a = e[t], o = Array(n);
		for (let e = 0; e < n; e++) o[e] = a[r[e]];
		i.push(o);
	}
	return i;
}
function fr(e) {
	let t = e[0][0], n = t.length;
	for (let r = 1; r < e.length; r++) {
		let i = e[r][0];
		if (i.length != n) return !1;
		if (i != t) {
			for (let e = 0; e < n; e++) if (i[e] != t[e]) return !1;
		}
	}
	return !0;
}
function pr(e, t = 100) {
	let n = e.length;
	if (n <= 1) return !0;
	let r = 0, i = n - 1;
	for (; r <= i && e[r] == null;) r++;
	for (; i >= r && e[i] == null;) i--;
	if (i <= r) return !0;
	let a = xn(1, _n((i - r + 1) / t));
	for (let t = e[r], n = r + a; n <= i; n += a) {
		let r = e[n];
		if (r != null) {
			if (r <= t) return !1;
			t = r;
		}
	}
	return !0;
}
var mr = [
	"January",
	"February",
	"March",
	"April",
	"May",
	"June",
	"July",
	"August",
	"September",
	"October",
	"November",
	"December"
], hr = [
	"Sunday",
	"Monday",
	"Tuesday",
	"Wednesday",
	"Thursday",
	"Friday",
	"Saturday"
];
function gr(e) {
	return e.slice(0, 3);
}
var _r = hr.map(gr), vr = {
	MMMM: mr,
	MMM: mr.map(gr),
	WWWW: hr,
	WWW: _r
};
function yr(e) {
	return (e < 10 ? "0" : "") + e;
}
function br(e) {
	return (e < 10 ? "00" : e < 100 ? "0" : "") + e;
}
var xr = {
	YYYY: (e) => e.getFullYear(),
	YY: (e) => (e.getFullYear() + "").slice(2),
	MMMM: (e, t) => t.MMMM[e.getMonth()],
	MMM: (e, t) => t.MMM[e.getMonth()],
	MM: (e) => yr(e.getMonth() + 1),
	M: (e) => e.getMonth() + 1,
	DD: (e) => yr(e.getDate()),
	D: (e) => e.getDate(),
	WWWW: (e, t) => t.WWWW[e.getDay()],
	WWW: (e, t) => t.WWW[e.getDay()],
	HH: (e) => yr(e.getHours()),
	H: (e) => e.getHours(),
	h: (e) => {
		let t = e.getHours();
		return t == 0 ? 12 : t > 12 ? t - 12 : t;
	},
	AA: (e) => e.getHours() >= 12 ? "PM" : "AM",
	aa: (e) => e.getHours() >= 12 ? "pm" : "am",
	a: (e) => e.getHours() >= 12 ? "p" : "a",
	mm: (e) => yr(e.getMinutes()),
	m: (e) => e.getMinutes(),
	ss: (e) => yr(e.getSeconds()),
	s: (e) => e.getSeconds(),
	fff: (e) => br(e.getMilliseconds())
};
function Sr(e, t) {
	t ||= vr;
	let n = [], r = /\{([a-z]+)\}|[^{]+/gi, i;
	for (; i = r.exec(e);) n.push(i[0][0] == "{" ? xr[i[1]] : i[0]);
	return (e) => {
		let r = "";
		for (let i = 0; i < n.length; i++) r += typeof n[i] == "string" ? n[i] : n[i](e, t);
		return r;
	};
}
var Cr = new Intl.DateTimeFormat().resolvedOptions().timeZone;
function wr(e, t) {
	let n;
	return t == "UTC" || t == "Etc/UTC" ? n = /* @__PURE__ */ new Date(+e + e.getTimezoneOffset() * 6e4) : t == Cr ? n = e : (n = new Date(e.toLocaleString("en-US", { timeZone: t })), n.setMilliseconds(e.getMilliseconds())), n;
}
var Tr = (e) => e % 1 == 0, Er = [
	1,
	2,
	2.5,
	5
], Dr = Gn(10, -32, 0, Er), Or = Gn(10, 0, 32, Er), kr = Or.filter(Tr), Ar = Dr.concat(Or), jr = "\n", Mr = "{YYYY}", Nr = jr + Mr, Pr = "{M}/{D}", Fr = jr + Pr, Ir = Fr + "/{YY}", Lr = "{aa}", Rr = "{h}:{mm}" + Lr, Y = jr + Rr, X = ":{ss}", Z = null;
function zr(e) {
	let t = e * 1e3, n = t * 60, r = n * 60, i = r * 24, a = i * 30, o = i * 365, s = (e == 1 ? Gn(10, 0, 3, Er).filter(Tr) : Gn(10, -3, 0, Er)).concat([
		t,
		t * 5,
		t * 10,
		t * 15,
		t * 30,
		n,
		n * 5,
		n * 10,
		n * 15,
		n * 30,
		r,
		r * 2,
		r * 3,
		r * 4,
		r * 6,
		r * 8,
		r * 12,
		i,
		i * 2,
		i * 3,
		i * 4,
		i * 5,
		i * 6,
		i * 7,
		i * 8,
		i * 9,
		i * 10,
		i * 15,
		a,
		a * 2,
		a * 3,
		a * 4,
		a * 6,
		o,
		o * 2,
		o * 5,
		o * 10,
		o * 25,
		o * 50,
		o * 100
	]), c = [
		[
			o,
			Mr,
			Z,
			Z,
			Z,
			Z,
			Z,
			Z,
			1
		],
		[
			i * 28,
			"{MMM}",
			Nr,
			Z,
			Z,
			Z,
			Z,
			Z,
			1
		],
		[
			i,
			Pr,
			Nr,
			Z,
			Z,
			Z,
			Z,
			Z,
			1
		],
		[
			r,
			"{h}" + Lr,
			Ir,
			Z,
			Fr,
			Z,
			Z,
			Z,
			1
		],
		[
			n,
			Rr,
			Ir,
			Z,
			Fr,
			Z,
			Z,
			Z,
			1
		],
		[
			t,
			X,
			Ir + " " + Rr,
			Z,
			Fr + " " + Rr,
			Z,
			Y,
			Z,
			1
		],
		[
			e,
			X + ".{fff}",
			Ir + " " + Rr,
			Z,
			Fr + " " + Rr,
			Z,
			Y,
			Z,
			1
		]
	];
	function l(t) {
		return (s, c, l, u, d, f) => {
			let p = [], m = d >= o, h = d >= a && d < o, g = t(l), _ = J(g * e, 3), v = Yr(g.getFullYear(), m ? 0 : g.getMonth(), h || m ? 1 : g.getDate()), y = J(v * e, 3);
			if (h || m) {
				let n = h ? d / a : 0, r = m ? d / o : 0, i = _ == y ? _ : J(Yr(v.getFullYear() + r, v.getMonth() + n, 1) * e, 3), s = new Date(vn(i / e)), c = s.getFullYear(), l = s.getMonth();
				for (let a = 0; i <= u; a++) {
					let o = Yr(c + r * a, l + n * a, 1), s = o - t(J(o * e, 3));
					i = J((+o + s) * e, 3), i <= u && p.push(i);
				}
			} else {
				let a = d >= i ? i : d, o = y + (_n(l) - _n(_)) + Vn(_ - y, a);
				p.push(o);
				let m = t(o), h = m.getHours() + m.getMinutes() / n + m.getSeconds() / r, g = d / r, v = f / s.axes[c]._space;
				for (; o = J(o + d, e == 1 ? 0 : 3), !(o > u);) if (g > 1) {
					let e = _n(J(h + g, 6)) % 24, n = t(o).getHours() - e;
					n > 1 && (n = -1), o -= n * r, h = (h + g) % 24;
					let i = p[p.length - 1];
					J((o - i) / d, 3) * v >= .7 && p.push(o);
				} else p.push(o);
			}
			return p;
		};
	}
	return [
		s,
		c,
		l
	];
}
var [Br, Vr, Hr] = zr(1), [Ur, Wr, Gr] = zr(.001);
Gn(2, -53, 53, [1]);
function Kr(e, t) {
	return e.map((e) => e.map((n, r) => r == 0 || r == 8 || n == null ? n : t(r == 1 || e[8] == 0 ? n : e[1] + n)));
}
function qr(e, t) {
	return (n, r, i, a, o) => {
		let s = t.find((e) => o >= e[0]) || t[t.length - 1], c, l, u, d, f, p;
		return r.map((t) => {
			let n = e(t), r = n.getFullYear(), i = n.getMonth(), a = n.getDate(), o = n.getHours(), m = n.getMinutes(), h = n.getSeconds(), g = r != c && s[2] || i != l && s[3] || a != u && s[4] || o != d && s[5] || m != f && s[6] || h != p && s[7] || s[1];
			return c = r, l = i, u = a, d = o, f = m, p = h, g(n);
		});
	};
}
function Jr(e, t) {
	let n = Sr(t);
	return (t, r, i, a, o) => r.map((t) => n(e(t)));
}
function Yr(e, t, n) {
	return new Date(e, t, n);
}
function Xr(e, t) {
	return t(e);
}
var Zr = "{YYYY}-{MM}-{DD} {h}:{mm}{aa}";
function Qr(e, t) {
	return (n, r, i, a) => a == null ? Ot : t(e(r));
}
function $r(e, t) {
	let n = e.series[t];
	return n.width ? n.stroke(e, t) : n.points.width ? n.points.stroke(e, t) : null;
}
function Q(e, t) {
	return e.series[t].fill(e, t);
}
var ei = {
	show: !0,
	live: !0,
	isolate: !1,
	mount: Mn,
	markers: {
		show: !0,
		width: 2,
		stroke: $r,
		fill: Q,
		dash: "solid"
	},
	idx: null,
	idxs: null,
	values: []
};
function ti(e, t) {
	let n = e.cursor.points, r = Rt(), i = n.size(e, t);
	G(r, ut, i), G(r, dt, i);
	let a = i / -2;
	G(r, "marginLeft", a), G(r, "marginTop", a);
	let o = n.width(e, t, i);
	return o && G(r, "borderWidth", o), r;
}
function ni(e, t) {
	let n = e.series[t].points;
	return n._fill || n._stroke;
}
function ri(e, t) {
	let n = e.series[t].points;
	return n._stroke || n._fill;
}
function ii(e, t) {
	return e.series[t].points.size;
}
var ai = [0, 0];
function oi(e, t, n) {
	return ai[0] = t, ai[1] = n, ai;
}
function si(e, t, n, r = !0) {
	return (e) => {
		e.button != 0 || r && e.target != t || n(e);
	};
}
function ci(e, t, n, r = !0) {
	return (e) => {
		r && e.target != t || n(e);
	};
}
var li = {
	show: !0,
	x: !0,
	y: !0,
	lock: !1,
	move: oi,
	points: {
		one: !1,
		show: ti,
		size: ii,
		width: 0,
		stroke: ri,
		fill: ni
	},
	bind: {
		mousedown: si,
		mouseup: si,
		click: si,
		dblclick: si,
		mousemove: ci,
		mouseleave: ci,
		mouseenter: ci
	},
	drag: {
		setScale: !0,
		x: !0,
		y: !1,
		dist: 0,
		uni: null,
		click: (e, t) => {
			t.stopPropagation(), t.stopImmediatePropagation();
		},
		_x: !1,
		_y: !1
	},
	focus: {
		dist: (e, t, n, r, i) => r - i,
		prox: -1,
		bias: 0
	},
	hover: {
		skip: [void 0],
		prox: null,
		bias: 0
	},
	left: -10,
	top: -10,
	idx: null,
	dataIdx: null,
	idxs: null,
	event: null
}, ui = {
	show: !0,
	stroke: "rgba(0,0,0,0.07)",
	width: 2
}, di = ir({}, ui, { filter: Pn }), fi = ir({}, di, { size: 10 }), pi = ir({}, ui, { show: !1 }), mi = "12px system-ui, -apple-system, \"Segoe UI\", Roboto, \"Helvetica Neue\", Arial, \"Noto Sans\", sans-serif, \"Apple Color Emoji\", \"Segoe UI Emoji\", \"Segoe UI Symbol\", \"Noto Color Emoji\"", hi = "bold " + mi, gi = 1.5, _i = {
	show: !0,
	scale: "x",
	stroke: gt,
	space: 50,
	gap: 5,
	alignTo: 1,
	size: 50,
	labelGap: 0,
	labelSize: 30,
	labelFont: hi,
	side: 2,
	grid: di,
	ticks: fi,
	border: pi,
	font: mi,
	lineGap: gi,
	rotate: 0
}, vi = "Value", yi = "Time", bi = {
	show: !0,
	scale: "x",
	auto: !1,
	sorted: 1,
	min: On,
	max: -Infinity,
	idxs: []
};
function xi(e, t, n, r, i) {
	return t.map((e) => e == null ? "" : pn(e));
}
function Si(e, t, n, r, i, a, o) {
	let s = [], c = Un.get(i) || 0;
	n = o ? n : J(Vn(n, i), c);
	for (let e = n; e <= r; e = J(e + i, c)) s.push(Object.is(e, -0) ? 0 : e);
	return s;
}
function Ci(e, t, n, r, i, a, o) {
	let s = [], c = e.scales[e.axes[t].scale].log;
	i = Sn(c, _n((c == 10 ? wn : Tn)(n))), c == 10 && (i = Ar[Yt(i, Ar)]);
	let l = n, u = i * c;
	c == 10 && (u = Ar[Yt(u, Ar)]);
	do
		s.push(l), l += i, c == 10 && !Un.has(l) && (l = J(l, Un.get(i))), l >= u && (i = l, u = i * c, c == 10 && (u = Ar[Yt(u, Ar)]));
	while (l <= r);
	return s;
}
function wi(e, t, n, r, i, a, o) {
	let s = e.scales[e.axes[t].scale].asinh, c = r > s ? Ci(e, t, xn(s, n), r, i) : [s], l = r >= 0 && n <= 0 ? [0] : [];
	return (n < -s ? Ci(e, t, xn(s, -r), -n, i) : [s]).reverse().map((e) => -e).concat(l, c);
}
var Ti = /./, Ei = /[12357]/, Di = /[125]/, Oi = /1/, ki = (e, t, n, r) => e.map((e, i) => t == 4 && e == 0 || i % r == 0 && n.test(e.toExponential()[+(e < 0)]) ? e : null);
function Ai(e, t, n, r, i) {
	let a = e.axes[n], o = a.scale, s = e.scales[o], c = e.valToPos, l = a._space, u = c(10, o), d = c(9, o) - u >= l ? Ti : c(7, o) - u >= l ? Ei : c(5, o) - u >= l ? Di : Oi;
	if (d == Oi) {
		let e = gn(c(1, o) - u);
		if (e < l) return ki(t.slice().reverse(), s.distr, d, yn(l / e)).reverse();
	}
	return ki(t, s.distr, d, 1);
}
function ji(e, t, n, r, i) {
	let a = e.axes[n], o = a.scale, s = a._space, c = e.valToPos, l = gn(c(1, o) - c(2, o));
	return l < s ? ki(t.slice().reverse(), 3, Ti, yn(s / l)).reverse() : t;
}
function Mi(e, t, n, r) {
	return r == null ? Ot : t == null ? "" : pn(t);
}
var Ni = {
	show: !0,
	scale: "y",
	stroke: gt,
	space: 30,
	gap: 5,
	alignTo: 1,
	size: 50,
	labelGap: 0,
	labelSize: 30,
	labelFont: hi,
	side: 3,
	grid: di,
	ticks: fi,
	border: pi,
	font: mi,
	lineGap: gi,
	rotate: 0
};
function Pi(e, t) {
	return J((3 + (e || 1) * 2) * t, 3);
}
function Fi(e, t) {
	let { scale: n, idxs: r } = e.series[0], i = e._data[0], a = e.valToPos(i[r[0]], n, !0), o = gn(e.valToPos(i[r[1]], n, !0) - a) / (e.series[t].points.space * W);
	return r[1] - r[0] <= o;
}
var Ii = {
	scale: null,
	auto: !0,
	sorted: 0,
	min: On,
	max: -Infinity
}, Li = (e, t, n, r, i) => i, Ri = {
	show: !0,
	auto: !0,
	sorted: 0,
	gaps: Li,
	alpha: 1,
	facets: [ir({}, Ii, { scale: "x" }), ir({}, Ii, { scale: "y" })]
}, zi = {
	scale: "y",
	auto: !0,
	sorted: 0,
	show: !0,
	spanGaps: !1,
	gaps: Li,
	alpha: 1,
	points: {
		show: Fi,
		filter: null
	},
	values: null,
	min: On,
	max: -Infinity,
	idxs: [],
	path: null,
	clip: null
};
function Bi(e, t, n, r, i) {
	return n / 10;
}
var Vi = {
	time: Ue,
	auto: !0,
	distr: 1,
	log: 10,
	asinh: 1,
	min: null,
	max: null,
	dir: 1,
	ori: 0
}, Hi = ir({}, Vi, {
	time: !1,
	ori: 1
}), Ui = {};
function Wi(e, t) {
	let n = Ui[e];
	return n || (n = {
		key: e,
		plots: [],
		sub(e) {
			n.plots.push(e);
		},
		unsub(e) {
			n.plots = n.plots.filter((t) => t != e);
		},
		pub(e, t, r, i, a, o, s) {
			for (let c = 0; c < n.plots.length; c++) n.plots[c] != t && n.plots[c].pub(e, t, r, i, a, o, s);
		}
	}, e != null && (Ui[e] = n)), n;
}
var Gi = 1, Ki = 2;
function qi(e, t, n) {
	let r = e.mode, i = e.series[t], a = r == 2 ? e._data[t] : e._data, o = e.scales, s = e.bbox, c = a[0], l = r == 2 ? a[1] : a[t], u = r == 2 ? o[i.facets[0].scale] : o[e.series[0].scale], d = r == 2 ? o[i.facets[1].scale] : o[i.scale], f = s.left, p = s.top, m = s.width, h = s.height, g = e.valToPosH, _ = e.valToPosV;
	return u.ori == 0 ? n(i, c, l, u, d, g, _, f, p, m, h, na, ia, oa, ca, ua) : n(i, c, l, u, d, _, g, p, f, h, m, ra, aa, sa, la, da);
}
function Ji(e, t) {
	let n = 0, r = 0, i = K(e.bands, qn);
	for (let e = 0; e < i.length; e++) {
		let a = i[e];
		a.series[0] == t ? n = a.dir : a.series[1] == t && (a.dir == 1 ? r |= 1 : r |= 2);
	}
	return [n, r == 1 ? -1 : r == 2 ? 1 : r == 3 ? 2 : 0];
}
function Yi(e, t, n, r, i) {
	let a = e.mode, o = e.series[t], s = a == 2 ? o.facets[1].scale : o.scale, c = e.scales[s];
	return i == -1 ? c.min : i == 1 ? c.max : c.distr == 3 ? c.dir == 1 ? c.min : c.max : 0;
}
function Xi(e, t, n, r, i, a) {
	return qi(e, t, (e, t, o, s, c, l, u, d, f, p, m) => {
		let h = e.pxRound, g = s.dir * (s.ori == 0 ? 1 : -1), _ = s.ori == 0 ? ia : aa, v, y;
		g == 1 ? (v = n, y = r) : (v = r, y = n);
		let b = h(l(t[v], s, p, d)), x = h(u(o[v], c, m, f)), S = h(l(t[y], s, p, d)), C = h(u(a == 1 ? c.max : c.min, c, m, f)), w = new Path2D(i);
		return _(w, S, C), _(w, b, C), _(w, b, x), w;
	});
}
function Zi(e, t, n, r, i, a) {
	let o = null;
	if (e.length > 0) {
		o = new Path2D();
		let s = t == 0 ? oa : sa, c = n;
		for (let t = 0; t < e.length; t++) {
			let n = e[t];
			if (n[1] > n[0]) {
				let e = n[0] - c;
				e > 0 && s(o, c, r, e, r + a), c = n[1];
			}
		}
		let l = n + i - c;
		l > 0 && s(o, c, r - 5, l, r + a + 10);
	}
	return o;
}
function Qi(e, t, n) {
	let r = e[e.length - 1];
	r && r[0] == t ? r[1] = n : e.push([t, n]);
}
function $i(e, t, n, r, i, a, o) {
	let s = [], c = e.length;
	for (let l = i == 1 ? n : r; l >= n && l <= r; l += i) if (t[l] === null) {
		let u = l, d = l;
		if (i == 1) for (; ++l <= r && t[l] === null;) d = l;
		else for (; --l >= n && t[l] === null;) d = l;
		let f = a(e[u]), p = d == u ? f : a(e[d]), m = u - i;
		f = o <= 0 && m >= 0 && m < c ? a(e[m]) : f;
		let h = d + i;
		p = o >= 0 && h >= 0 && h < c ? a(e[h]) : p, p >= f && s.push([f, p]);
	}
	return s;
}
function ea(e) {
	return e == 0 ? Nn : e == 1 ? vn : (t) => Bn(t, e);
}
function ta(e) {
	let t = e == 0 ? na : ra, n = e == 0 ? (e, t, n, r, i, a) => {
		e.arcTo(t, n, r, i, a);
	} : (e, t, n, r, i, a) => {
		e.arcTo(n, t, i, r, a);
	}, r = e == 0 ? (e, t, n, r, i) => {
		e.rect(t, n, r, i);
	} : (e, t, n, r, i) => {
		e.rect(n, t, i, r);
	};
	return (e, i, a, o, s, c = 0, l = 0) => {
		c == 0 && l == 0 ? r(e, i, a, o, s) : (c = bn(c, o / 2, s / 2), l = bn(l, o / 2, s / 2), t(e, i + c, a), n(e, i + o, a, i + o, a + s, c), n(e, i + o, a + s, i, a + s, l), n(e, i, a + s, i, a, l), n(e, i, a, i + o, a, c), e.closePath());
	};
}
var na = (e, t, n) => {
	e.moveTo(t, n);
}, ra = (e, t, n) => {
	e.moveTo(n, t);
}, ia = (e, t, n) => {
	e.lineTo(t, n);
}, aa = (e, t, n) => {
	e.lineTo(n, t);
}, oa = ta(0), sa = ta(1), ca = (e, t, n, r, i, a) => {
	e.arc(t, n, r, i, a);
}, la = (e, t, n, r, i, a) => {
	e.arc(n, t, r, i, a);
}, ua = (e, t, n, r, i, a, o) => {
	e.bezierCurveTo(t, n, r, i, a, o);
}, da = (e, t, n, r, i, a, o) => {
	e.bezierCurveTo(n, t, i, r, o, a);
};
function fa(e) {
	return (e, t, n, r, i) => qi(e, t, (t, a, o, s, c, l, u, d, f, p, m) => {
		let { pxRound: h, points: g } = t, _, v;
		s.ori == 0 ? (_ = na, v = ca) : (_ = ra, v = la);
		let y = J(g.width * W, 3), b = (g.size - g.width) / 2 * W, x = J(b * 2, 3), S = new Path2D(), C = new Path2D(), { left: w, top: T, width: E, height: D } = e.bbox;
		oa(C, w - x, T - x, E + x * 2, D + x * 2);
		let O = (e) => {
			if (o[e] != null) {
				let t = h(l(a[e], s, p, d)), n = h(u(o[e], c, m, f));
				_(S, t + b, n), v(S, t, n, b, 0, hn * 2);
			}
		};
		if (i) i.forEach(O);
		else for (let e = n; e <= r; e++) O(e);
		return {
			stroke: y > 0 ? S : null,
			fill: S,
			clip: C,
			flags: 3
		};
	});
}
function pa(e) {
	return (t, n, r, i, a, o) => {
		r != i && (a != r && o != r && e(t, n, r), a != i && o != i && e(t, n, i), e(t, n, o));
	};
}
var ma = pa(ia), ha = pa(aa);
function ga(e) {
	let t = K(e?.alignGaps, 0);
	return (e, n, r, i) => qi(e, n, (a, o, s, c, l, u, d, f, p, m, h) => {
		[r, i] = $t(s, r, i);
		let g = a.pxRound, _ = (e) => g(u(e, c, m, f)), v = (e) => g(d(e, l, h, p)), y, b;
		c.ori == 0 ? (y = ia, b = ma) : (y = aa, b = ha);
		let x = c.dir * (c.ori == 0 ? 1 : -1), S = {
			stroke: new Path2D(),
			fill: null,
			clip: null,
			band: null,
			gaps: null,
			flags: Gi
		}, C = S.stroke, w = !1;
		if (i - r >= m * 4) {
			let t = (t) => e.posToVal(t, c.key, !0), n = null, a = null, l, u, d, f = _(o[x == 1 ? r : i]), p = _(o[r]), m = _(o[i]), h = t(x == 1 ? p + 1 : m - 1);
			for (let e = x == 1 ? r : i; e >= r && e <= i; e += x) {
				let r = o[e], i = (x == 1 ? r < h : r > h) ? f : _(r), c = s[e];
				i == f ? c == null ? c === null && (w = !0) : (u = c, n == null ? (y(C, i, v(u)), l = n = a = u) : u < n ? n = u : u > a && (a = u)) : (n != null && b(C, f, v(n), v(a), v(l), v(u)), c == null ? (n = a = null, c === null && (w = !0)) : (u = c, y(C, i, v(u)), n = a = l = u), f = i, h = t(f + x));
			}
			n != null && n != a && d != f && b(C, f, v(n), v(a), v(l), v(u));
		} else for (let e = x == 1 ? r : i; e >= r && e <= i; e += x) {
			let t = s[e];
			t === null ? w = !0 : t != null && y(C, _(o[e]), v(t));
		}
		let [T, E] = Ji(e, n);
		if (a.fill != null || T != 0) {
			let t = S.fill = new Path2D(C), s = v(a.fillTo(e, n, a.min, a.max, T)), c = _(o[r]), l = _(o[i]);
			x == -1 && ([l, c] = [c, l]), y(t, l, s), y(t, c, s);
		}
		if (!a.spanGaps) {
			let l = [];
			w && l.push(...$i(o, s, r, i, x, _, t)), S.gaps = l = a.gaps(e, n, r, i, l), S.clip = Zi(l, c.ori, f, p, m, h);
		}
		return E != 0 && (S.band = E == 2 ? [Xi(e, n, r, i, C, -1), Xi(e, n, r, i, C, 1)] : Xi(e, n, r, i, C, E)), S;
	});
}
function _a(e) {
	let t = K(e.align, 1), n = K(e.ascDesc, !1), r = K(e.alignGaps, 0), i = K(e.extend, !1);
	return (e, a, o, s) => qi(e, a, (c, l, u, d, f, p, m, h, g, _, v) => {
		[o, s] = $t(u, o, s);
		let y = c.pxRound, { left: b, width: x } = e.bbox, S = (e) => y(p(e, d, _, h)), C = (e) => y(m(e, f, v, g)), w = d.ori == 0 ? ia : aa, T = {
			stroke: new Path2D(),
			fill: null,
			clip: null,
			band: null,
			gaps: null,
			flags: Gi
		}, E = T.stroke, D = d.dir * (d.ori == 0 ? 1 : -1), O = C(u[D == 1 ? o : s]), k = S(l[D == 1 ? o : s]), A = k, j = k;
		i && t == -1 && (j = b, w(E, j, O)), w(E, k, O);
		for (let e = D == 1 ? o : s; e >= o && e <= s; e += D) {
			let n = u[e];
			if (n == null) continue;
			let r = S(l[e]), i = C(n);
			t == 1 ? w(E, r, O) : w(E, A, i), w(E, r, i), O = i, A = r;
		}
		let M = A;
		i && t == 1 && (M = b + x, w(E, M, O));
		let [ee, N] = Ji(e, a);
		if (c.fill != null || ee != 0) {
			let t = T.fill = new Path2D(E), n = C(c.fillTo(e, a, c.min, c.max, ee));
			w(t, M, n), w(t, j, n);
		}
		if (!c.spanGaps) {
			let i = [];
			i.push(...$i(l, u, o, s, D, S, r));
			let f = c.width * W / 2, p = n || t == 1 ? f : -f, m = n || t == -1 ? -f : f;
			i.forEach((e) => {
				e[0] += p, e[1] += m;
			}), T.gaps = i = c.gaps(e, a, o, s, i), T.clip = Zi(i, d.ori, h, g, _, v);
		}
		return N != 0 && (T.band = N == 2 ? [Xi(e, a, o, s, E, -1), Xi(e, a, o, s, E, 1)] : Xi(e, a, o, s, E, N)), T;
	});
}
function va(e, t, n, r, i, a, o = On) {
	if (e.length > 1) {
		let s = null;
		for (let c = 0, l = Infinity; c < e.length; c++) if (t[c] !== void 0) {
			if (s != null) {
				let t = gn(e[c] - e[s]);
				t < l && (l = t, o = gn(n(e[c], r, i, a) - n(e[s], r, i, a)));
			}
			s = c;
		}
	}
	return o;
}
function ya(e) {
	e ||= Kn;
	let t = K(e.size, [
		.6,
		On,
		1
	]), n = e.align || 0, r = e.gap || 0, i = e.radius;
	i = i == null ? [0, 0] : typeof i == "number" ? [i, 0] : i;
	let a = q(i), o = 1 - t[0], s = K(t[1], On), c = K(t[2], 1), l = K(e.disp, Kn), u = K(e.each, (e) => {}), { fill: d, stroke: f } = l;
	return (e, t, i, p) => qi(e, t, (m, h, g, _, v, y, b, x, S, C, w) => {
		let T = m.pxRound, E = n, D = r * W, O = s * W, k = c * W, A, j;
		_.ori == 0 ? [A, j] = a(e, t) : [j, A] = a(e, t);
		let M = _.dir * (_.ori == 0 ? 1 : -1), ee = _.ori == 0 ? oa : sa, N = _.ori == 0 ? u : (e, t, n, r, i, a, o) => {
			u(e, t, n, i, r, o, a);
		}, te = K(e.bands, qn).find((e) => e.series[0] == t), ne = te == null ? 0 : te.dir, P = m.fillTo(e, t, m.min, m.max, ne), re = T(b(P, v, w, S)), F, I, ie, L = C, R = T(m.width * W), z = !1, ae = null, oe = null, se = null, ce = null;
		d != null && (R == 0 || f != null) && (z = !0, ae = d.values(e, t, i, p), oe = /* @__PURE__ */ new Map(), new Set(ae).forEach((e) => {
			e != null && oe.set(e, new Path2D());
		}), R > 0 && (se = f.values(e, t, i, p), ce = /* @__PURE__ */ new Map(), new Set(se).forEach((e) => {
			e != null && ce.set(e, new Path2D());
		})));
		let { x0: le, size: ue } = l;
		if (le != null && ue != null) {
			E = 1, h = le.values(e, t, i, p), le.unit == 2 && (h = h.map((t) => e.posToVal(x + t * C, _.key, !0)));
			let n = ue.values(e, t, i, p);
			I = ue.unit == 2 ? n[0] * C : y(n[0], _, C, x) - y(0, _, C, x), L = va(h, g, y, _, C, x, L), ie = L - I + D;
		} else L = va(h, g, y, _, C, x, L), ie = L * o + D, I = L - ie;
		ie < 1 && (ie = 0), R >= I / 2 && (R = 0), ie < 5 && (T = Nn);
		let de = ie > 0, fe = L - ie - (de ? R : 0);
		I = T(An(fe, k, O)), F = (E == 0 ? I / 2 : E == M ? 0 : I) - E * M * ((E == 0 ? D / 2 : 0) + (de ? R / 2 : 0));
		let pe = {
			stroke: null,
			fill: null,
			clip: null,
			band: null,
			gaps: null,
			flags: 0
		}, me = z ? null : new Path2D(), he = null;
		if (te != null) he = e.data[te.series[1]];
		else {
			let { y0: n, y1: r } = l;
			n != null && r != null && (g = r.values(e, t, i, p), he = n.values(e, t, i, p));
		}
		let ge = A * I, _e = j * I;
		for (let n = M == 1 ? i : p; n >= i && n <= p; n += M) {
			let r = g[n];
			if (r == null) continue;
			if (he != null) {
				let e = he[n] ?? 0;
				if (r - e == 0) continue;
				re = b(e, v, w, S);
			}
			let i = y(_.distr != 2 || l != null ? h[n] : n, _, C, x), a = b(K(r, P), v, w, S), o = T(i - F), s = T(xn(a, re)), c = T(bn(a, re)), u = s - c;
			if (r != null) {
				let i = r < 0 ? _e : ge, a = r < 0 ? ge : _e;
				z ? (R > 0 && se[n] != null && ee(ce.get(se[n]), o, c + _n(R / 2), I, xn(0, u - R), i, a), ae[n] != null && ee(oe.get(ae[n]), o, c + _n(R / 2), I, xn(0, u - R), i, a)) : ee(me, o, c + _n(R / 2), I, xn(0, u - R), i, a), N(e, t, n, o - R / 2, c, I + R, u);
			}
		}
		return R > 0 ? pe.stroke = z ? ce : me : z || (pe._fill = m.width == 0 ? m._fill : m._stroke ?? m._fill, pe.width = 0), pe.fill = z ? oe : me, pe;
	});
}
function ba(e, t) {
	let n = K(t?.alignGaps, 0);
	return (t, r, i, a) => qi(t, r, (o, s, c, l, u, d, f, p, m, h, g) => {
		[i, a] = $t(c, i, a);
		let _ = o.pxRound, v = (e) => _(d(e, l, h, p)), y = (e) => _(f(e, u, g, m)), b, x, S;
		l.ori == 0 ? (b = na, S = ia, x = ua) : (b = ra, S = aa, x = da);
		let C = l.dir * (l.ori == 0 ? 1 : -1), w = v(s[C == 1 ? i : a]), T = w, E = [], D = [];
		for (let e = C == 1 ? i : a; e >= i && e <= a; e += C) if (c[e] != null) {
			let t = s[e], n = v(t);
			E.push(T = n), D.push(y(c[e]));
		}
		let O = {
			stroke: e(E, D, b, S, x, _),
			fill: null,
			clip: null,
			band: null,
			gaps: null,
			flags: Gi
		}, k = O.stroke, [A, j] = Ji(t, r);
		if (o.fill != null || A != 0) {
			let e = O.fill = new Path2D(k), n = y(o.fillTo(t, r, o.min, o.max, A));
			S(e, T, n), S(e, w, n);
		}
		if (!o.spanGaps) {
			let e = [];
			e.push(...$i(s, c, i, a, C, v, n)), O.gaps = e = o.gaps(t, r, i, a, e), O.clip = Zi(e, l.ori, p, m, h, g);
		}
		return j != 0 && (O.band = j == 2 ? [Xi(t, r, i, a, k, -1), Xi(t, r, i, a, k, 1)] : Xi(t, r, i, a, k, j)), O;
	});
}
function xa(e) {
	return ba(Sa, e);
}
function Sa(e, t, n, r, i, a) {
	let o = e.length;
	if (o < 2) return null;
	let s = new Path2D();
	if (n(s, e[0], t[0]), o == 2) r(s, e[1], t[1]);
	else {
		let n = Array(o), r = Array(o - 1), a = Array(o - 1), c = Array(o - 1);
		for (let n = 0; n < o - 1; n++) a[n] = t[n + 1] - t[n], c[n] = e[n + 1] - e[n], r[n] = a[n] / c[n];
		n[0] = r[0];
		for (let e = 1; e < o - 1; e++) r[e] === 0 || r[e - 1] === 0 || r[e - 1] > 0 != r[e] > 0 ? n[e] = 0 : (n[e] = 3 * (c[e - 1] + c[e]) / ((2 * c[e] + c[e - 1]) / r[e - 1] + (c[e] + 2 * c[e - 1]) / r[e]), isFinite(n[e]) || (n[e] = 0));
		n[o - 1] = r[o - 2];
		for (let r = 0; r < o - 1; r++) i(s, e[r] + c[r] / 3, t[r] + n[r] * c[r] / 3, e[r + 1] - c[r] / 3, t[r + 1] - n[r + 1] * c[r] / 3, e[r + 1], t[r + 1]);
	}
	return s;
}
var Ca = /* @__PURE__ */ new Set();
function wa() {
	for (let e of Ca) e.syncRect(!0);
}
kt && (qt(wt, jt, wa), qt(Tt, jt, wa, !0), qt(Dt, jt, () => {
	Ba.pxRatio = W;
}));
var Ta = ga(), Ea = fa();
function Da(e, t, n, r) {
	return (r ? [e[0], e[1]].concat(e.slice(2)) : [e[0]].concat(e.slice(1))).map((e, r) => ka(e, r, t, n));
}
function Oa(e, t) {
	return e.map((e, n) => n == 0 ? {} : ir({}, t, e));
}
function ka(e, t, n, r) {
	return ir({}, t == 0 ? n : r, e);
}
function Aa(e, t, n) {
	return t == null ? Jn : [t, n];
}
var ja = Aa;
function Ma(e, t, n) {
	return t == null ? Jn : ln(t, n, an, !0);
}
function Na(e, t, n, r) {
	return t == null ? Jn : nn(t, n, e.scales[r].log, !1);
}
var Pa = Na;
function Fa(e, t, n, r) {
	return t == null ? Jn : rn(t, n, e.scales[r].log, !1);
}
var Ia = Fa;
function La(e, t, n, r, i) {
	let a = xn(kn(e), kn(t)), o = t - e, s = Yt(i / r * o, n);
	do {
		let e = n[s], t = r * e / o;
		if (t >= i && a + (e < 5 ? Un.get(e) : 0) <= 17) return [e, t];
	} while (++s < n.length);
	return [0, 0];
}
function Ra(e) {
	let t, n;
	return e = e.replace(/(\d+)px/, (e, r) => (t = vn((n = +r) * W)) + "px"), [
		e,
		t,
		n
	];
}
function za(e) {
	e.show && [e.font, e.labelFont].forEach((e) => {
		let t = J(e[2] * W, 1);
		e[0] = e[0].replace(/[0-9.]+px/, t + "px"), e[1] = t;
	});
}
function Ba(e, t, n) {
	let r = { mode: K(e.mode, 1) }, i = r.mode;
	function a(e, t, n, r) {
		let i = t.valToPct(e);
		return r + n * (t.dir == -1 ? 1 - i : i);
	}
	function o(e, t, n, r) {
		let i = t.valToPct(e);
		return r + n * (t.dir == -1 ? i : 1 - i);
	}
	function s(e, t, n, r) {
		return t.ori == 0 ? a(e, t, n, r) : o(e, t, n, r);
	}
	r.valToPosH = a, r.valToPosV = o;
	let c = !1;
	r.status = 0;
	let l = r.root = Rt(We);
	if (e.id != null && (l.id = e.id), Ft(l, e.class), e.title) {
		let t = Rt(qe, l);
		t.textContent = e.title;
	}
	let u = Lt("canvas"), d = r.ctx = u.getContext("2d"), f = Rt(Je, l);
	qt("click", f, (e) => {
		e.target === m && (Y != Fr || X != Ir) && zr.click(r, e);
	}, !0);
	let p = r.under = Rt(Ye, f);
	f.appendChild(u);
	let m = r.over = Rt(Xe, f);
	e = rr(e);
	let h = +K(e.pxAlign, 1), g = ea(h);
	(e.plugins || []).forEach((t) => {
		t.opts && (e = t.opts(r, e) || e);
	});
	let _ = e.ms || .001, v = r.series = i == 1 ? Da(e.series || [], bi, zi, !1) : Oa(e.series || [null], Ri), y = r.axes = Da(e.axes || [], _i, Ni, !0), b = r.scales = {}, x = r.bands = e.bands || [];
	x.forEach((e) => {
		e.fill = q(e.fill || null), e.dir = K(e.dir, -1);
	});
	let S = i == 2 ? v[1].facets[0].scale : v[0].scale, C = {
		axes: gr,
		series: nr
	}, w = (e.drawOrder || ["axes", "series"]).map((e) => C[e]);
	function T(e) {
		let t = e.distr == 3 ? (t) => wn(t > 0 ? t : e.clamp(r, t, e.min, e.max, e.key)) : e.distr == 4 ? (t) => Dn(t, e.asinh) : e.distr == 100 ? (t) => e.fwd(t) : (e) => e;
		return (n) => {
			let r = t(n), { _min: i, _max: a } = e, o = a - i;
			return (r - i) / o;
		};
	}
	function E(t) {
		let n = b[t];
		if (n == null) {
			let r = (e.scales || Kn)[t] || Kn;
			if (r.from != null) {
				E(r.from);
				let e = ir({}, b[r.from], r, { key: t });
				e.valToPct = T(e), b[t] = e;
			} else {
				n = b[t] = ir({}, t == S ? Vi : Hi, r), n.key = t;
				let e = n.time, a = n.range, o = Yn(a);
				if ((t != S || i == 2 && !e) && (o && (a[0] == null || a[1] == null) && (a = {
					min: a[0] == null ? on : {
						mode: 1,
						hard: a[0],
						soft: a[0]
					},
					max: a[1] == null ? on : {
						mode: 1,
						hard: a[1],
						soft: a[1]
					}
				}, o = !1), !o && $n(a))) {
					let e = a;
					a = (t, n, r) => n == null ? Jn : ln(n, r, e);
				}
				n.range = q(a || (e ? ja : t == S ? n.distr == 3 ? Pa : n.distr == 4 ? Ia : Aa : n.distr == 3 ? Na : n.distr == 4 ? Fa : Ma)), n.auto = q(!o && n.auto), n.clamp = q(n.clamp || Bi), n._min = n._max = null, n.valToPct = T(n);
			}
		}
	}
	E("x"), E("y"), i == 1 && v.forEach((e) => {
		E(e.scale);
	}), y.forEach((e) => {
		E(e.scale);
	});
	for (let t in e.scales) E(t);
	let D = b[S], O = D.distr, k, A;
	D.ori == 0 ? (Ft(l, Ge), k = a, A = o) : (Ft(l, Ke), k = o, A = a);
	let j = {};
	for (let e in b) {
		let t = b[e];
		(t.min != null || t.max != null) && (j[e] = {
			min: t.min,
			max: t.max
		}, t.min = t.max = null);
	}
	let M = e.tzDate || ((e) => new Date(vn(e / _))), ee = e.fmtDate || Sr, N = _ == 1 ? Hr(M) : Gr(M), te = qr(M, Kr(_ == 1 ? Vr : Wr, ee)), ne = Qr(M, Xr(Zr, ee)), P = [], re = r.legend = ir({}, ei, e.legend), F = r.cursor = ir({}, li, { drag: { y: i == 2 } }, e.cursor), I = re.show, ie = F.show, L = re.markers;
	re.idxs = P, L.width = q(L.width), L.dash = q(L.dash), L.stroke = q(L.stroke), L.fill = q(L.fill);
	let R, z, ae, oe = [], se = [], ce, le = !1, ue = {};
	if (re.live) {
		let e = v[1] ? v[1].values : null;
		le = e != null, ce = le ? e(r, 1, 0) : { _: 0 };
		for (let e in ce) ue[e] = Ot;
	}
	if (I) {
		if (R = Lt("table", rt, l), ae = Lt("tbody", null, R), re.mount(r, R), le) {
			z = Lt("thead", null, R, ae);
			let e = Lt("tr", null, z);
			for (var de in Lt("th", null, e), ce) Lt("th", ct, e).textContent = de;
		} else Ft(R, at), re.live && Ft(R, it);
	}
	let fe = { show: !0 }, pe = { show: !1 };
	function me(e, t) {
		if (t == 0 && (le || !re.live || i == 2)) return Jn;
		let n = [], a = Lt("tr", ot, ae, ae.childNodes[t]);
		Ft(a, e.class), e.show || Ft(a, Qe);
		let o = Lt("th", null, a);
		if (L.show) {
			let e = Rt(st, o);
			if (t > 0) {
				let n = L.width(r, t);
				n && (e.style.border = n + "px " + L.dash(r, t) + " " + L.stroke(r, t)), e.style.background = L.fill(r, t);
			}
		}
		let s = Rt(ct, o);
		for (var c in e.label instanceof HTMLElement ? s.appendChild(e.label) : s.textContent = e.label, t > 0 && (L.show || (s.style.color = e.width > 0 ? L.stroke(r, t) : L.fill(r, t)), ge("click", o, (t) => {
			if (F._lock) return;
			Be(t);
			let n = v.indexOf(e);
			if ((t.ctrlKey || t.metaKey) != re.isolate) {
				let e = v.some((e, t) => t > 0 && t != n && e.show);
				v.forEach((t, r) => {
					r > 0 && ai(r, e ? r == n ? fe : pe : fe, !0, ma.setSeries);
				});
			} else ai(n, { show: !e.show }, !0, ma.setSeries);
		}, !1), Ue && ge(xt, o, (t) => {
			F._lock || (Be(t), ai(v.indexOf(e), mi, !0, ma.setSeries));
		}, !1)), ce) {
			let e = Lt("td", lt, a);
			e.textContent = "--", n.push(e);
		}
		return [a, n];
	}
	let he = /* @__PURE__ */ new Map();
	function ge(e, t, n, i = !0) {
		let a = he.get(t) || {}, o = F.bind[e](r, t, n, i);
		o && (qt(e, t, a[e] = o), he.set(t, a));
	}
	function _e(e, t, n) {
		let r = he.get(t) || {};
		for (let n in r) (e == null || n == e) && (Jt(n, t, r[n]), delete r[n]);
		e ?? he.delete(t);
	}
	let ve = 0, B = 0, V = 0, H = 0, ye = 0, U = 0, be = ye, xe = U, Se = V, Ce = H, we = 0, Te = 0, Ee = 0, De = 0;
	r.bbox = {};
	let Oe = !1, ke = !1, Ae = !1, je = !1, Me = !1, Ne = !1;
	function Pe(e, t, n) {
		(n || e != r.width || t != r.height) && Fe(e, t), _r(!1), Ae = !0, ke = !0, Cr();
	}
	function Fe(e, t) {
		r.width = ve = V = e, r.height = B = H = t, ye = U = 0, Re(), ze();
		let n = r.bbox;
		we = n.left = Bn(ye * W, .5), Te = n.top = Bn(U * W, .5), Ee = n.width = Bn(V * W, .5), De = n.height = Bn(H * W, .5);
	}
	function Ie() {
		let e = !1, t = 0;
		for (; !e;) {
			t++;
			let n = mr(t), i = hr(t);
			e = t == 3 || n && i, e || (Fe(r.width, r.height), ke = !0);
		}
	}
	function Le({ width: e, height: t }) {
		Pe(e, t);
	}
	r.setSize = Le;
	function Re() {
		let e = !1, t = !1, n = !1, r = !1;
		y.forEach((i, a) => {
			if (i.show && i._show) {
				let { side: a, _size: o } = i, s = a % 2, c = o + (i.label == null ? 0 : i.labelSize);
				c > 0 && (s ? (V -= c, a == 3 ? (ye += c, r = !0) : n = !0) : (H -= c, a == 0 ? (U += c, e = !0) : t = !0));
			}
		}), zt[0] = e, zt[1] = n, zt[2] = t, zt[3] = r, V -= Kt[1] + Kt[3], ye += Kt[3], H -= Kt[2] + Kt[0], U += Kt[0];
	}
	function ze() {
		let e = ye + V, t = U + H, n = ye, r = U;
		function i(i, a) {
			switch (i) {
				case 1: return e += a, e - a;
				case 2: return t += a, t - a;
				case 3: return n -= a, n + a;
				case 0: return r -= a, r + a;
			}
		}
		y.forEach((e, t) => {
			if (e.show && e._show) {
				let t = e.side;
				e._pos = i(t, e._size), e.label != null && (e._lpos = i(t, e.labelSize));
			}
		});
	}
	if (F.dataIdx == null) {
		let e = F.hover, n = e.skip = new Set(e.skip ?? []);
		n.add(void 0);
		let r = e.prox = q(e.prox), i = e.bias ??= 0;
		F.dataIdx = (e, a, o, s) => {
			if (a == 0) return o;
			let c = o, l = r(e, a, o, s) ?? On, u = l >= 0 && l < On, d = D.ori == 0 ? V : H, f = F.left, p = t[0], m = t[a];
			if (n.has(m[o])) {
				c = null;
				let e = null, t = null, r;
				if (i == 0 || i == -1) for (r = o; e == null && r-- > 0;) n.has(m[r]) || (e = r);
				if (i == 0 || i == 1) for (r = o; t == null && r++ < m.length;) n.has(m[r]) || (t = r);
				if (e != null || t != null) {
					if (u) {
						let n = e == null ? -Infinity : k(p[e], D, d, 0), r = t == null ? Infinity : k(p[t], D, d, 0), i = f - n, a = r - f;
						i <= a ? i <= l && (c = e) : a <= l && (c = t);
					} else c = t == null ? e : e == null ? t : o - e <= t - o ? e : t;
				}
			} else u && gn(f - k(p[o], D, d, 0)) > l && (c = null);
			return c;
		};
	}
	let Be = (e) => {
		F.event = e;
	};
	F.idxs = P, F._lock = !1;
	let Ve = F.points;
	Ve.show = q(Ve.show), Ve.size = q(Ve.size), Ve.stroke = q(Ve.stroke), Ve.width = q(Ve.width), Ve.fill = q(Ve.fill);
	let He = r.focus = ir({}, e.focus || { alpha: .3 }, F.focus), Ue = He.prox >= 0, gt = Ue && Ve.one, wt = [], Tt = [], Et = [];
	function kt(e, t) {
		let n = Ve.show(r, t);
		if (n instanceof HTMLElement) return Ft(n, nt), Ft(n, e.class), Bt(n, -10, -10, V, H), m.insertBefore(n, wt[t]), n;
	}
	function Mt(e, t) {
		if (i == 1 || t > 0) {
			let t = i == 1 && b[e.scale].time, n = e.value;
			e.value = t ? Qn(n) ? Qr(M, Xr(n, ee)) : n || ne : n || Mi, e.label = e.label || (t ? yi : vi);
		}
		if (gt || t > 0) {
			e.width = e.width == null ? 1 : e.width, e.paths = e.paths || Ta || Fn, e.fillTo = q(e.fillTo || Yi), e.pxAlign = +K(e.pxAlign, h), e.pxRound = ea(e.pxAlign), e.stroke = q(e.stroke || null), e.fill = q(e.fill || null), e._stroke = e._fill = e._paths = e._focus = null;
			let t = Pi(xn(1, e.width), 1), n = e.points = ir({}, {
				size: t,
				width: xn(1, t * .2),
				stroke: e.stroke,
				space: t * 2,
				paths: Ea,
				_stroke: null,
				_fill: null
			}, e.points);
			n.show = q(n.show), n.filter = q(n.filter), n.fill = q(n.fill), n.stroke = q(n.stroke), n.paths = q(n.paths), n.pxAlign = e.pxAlign;
		}
		if (I) {
			let n = me(e, t);
			oe.splice(t, 0, n[0]), se.splice(t, 0, n[1]), re.values.push(null);
		}
		if (ie) {
			P.splice(t, 0, null);
			let n = null;
			gt ? t == 0 && (n = kt(e, t)) : t > 0 && (n = kt(e, t)), wt.splice(t, 0, n), Tt.splice(t, 0, 0), Et.splice(t, 0, 0);
		}
		fa("addSeries", t);
	}
	function Nt(e, t) {
		t ??= v.length, e = i == 1 ? ka(e, t, bi, zi) : ka(e, t, {}, Ri), v.splice(t, 0, e), Mt(v[t], t);
	}
	r.addSeries = Nt;
	function Pt(e) {
		if (v.splice(e, 1), I) {
			re.values.splice(e, 1), se.splice(e, 1);
			let t = oe.splice(e, 1)[0];
			_e(null, t.firstChild), t.remove();
		}
		ie && (P.splice(e, 1), wt.splice(e, 1)[0].remove(), Tt.splice(e, 1), Et.splice(e, 1)), fa("delSeries", e);
	}
	r.delSeries = Pt;
	let zt = [
		!1,
		!1,
		!1,
		!1
	];
	function Vt(e, t) {
		if (e._show = e.show, e.show) {
			let n = e.side % 2, i = b[e.scale];
			i ??= (e.scale = n ? v[1].scale : S, b[e.scale]);
			let a = i.time;
			e.size = q(e.size), e.space = q(e.space), e.rotate = q(e.rotate), Yn(e.incrs) && e.incrs.forEach((e) => {
				!Un.has(e) && Un.set(e, Wn(e));
			}), e.incrs = q(e.incrs || (i.distr == 2 ? kr : a ? _ == 1 ? Br : Ur : Ar)), e.splits = q(e.splits || (a && i.distr == 1 ? N : i.distr == 3 ? Ci : i.distr == 4 ? wi : Si)), e.stroke = q(e.stroke), e.grid.stroke = q(e.grid.stroke), e.ticks.stroke = q(e.ticks.stroke), e.border.stroke = q(e.border.stroke);
			let o = e.values;
			e.values = Yn(o) && !Yn(o[0]) ? q(o) : a ? Yn(o) ? qr(M, Kr(o, ee)) : Qn(o) ? Jr(M, o) : o || te : o || xi, e.filter = q(e.filter || (i.distr >= 3 && i.log == 10 ? Ai : i.distr == 3 && i.log == 2 ? ji : Pn)), e.font = Ra(e.font), e.labelFont = Ra(e.labelFont), e._size = e.size(r, null, t, 0), e._space = e._rotate = e._incrs = e._found = e._splits = e._values = null, e._size > 0 && (zt[t] = !0, e._el = Rt(Ze, f));
		}
	}
	function Ut(e, t, n, r) {
		let [i, a, o, s] = n, c = t % 2, l = 0;
		return c == 0 && (s || a) && (l = t == 0 && !i || t == 2 && !o ? vn(_i.size / 3) : 0), c == 1 && (i || o) && (l = t == 1 && !a || t == 3 && !s ? vn(Ni.size / 2) : 0), l;
	}
	let Gt = r.padding = (e.padding || [
		Ut,
		Ut,
		Ut,
		Ut
	]).map((e) => q(K(e, Ut))), Kt = r._padding = Gt.map((e, t) => e(r, t, zt, 0)), Xt, Zt = null, Qt = null, $t = i == 1 ? v[0].idxs : null, en = null, sn = !1;
	function cn(e, n) {
		if (t = e ?? [], r.data = r._data = t, i == 2) {
			Xt = 0;
			for (let e = 1; e < v.length; e++) Xt += t[e][0].length;
		} else {
			t.length == 0 && (r.data = r._data = t = [[]]), en = t[0], Xt = en.length;
			let e = t;
			if (O == 2) {
				e = t.slice();
				let n = e[0] = Array(Xt);
				for (let e = 0; e < Xt; e++) n[e] = e;
			}
			r._data = t = e;
		}
		if (_r(!0), fa("setData"), O == 2 && (Ae = !0), n !== !1) {
			let e = D;
			e.auto(r, sn) ? dn() : ii(S, e.min, e.max), je ||= F.left >= 0, Ne = !0, Cr();
		}
	}
	r.setData = cn;
	function dn() {
		sn = !0;
		let e, n;
		i == 1 && (Xt > 0 ? (Zt = $t[0] = 0, Qt = $t[1] = Xt - 1, e = t[0][Zt], n = t[0][Qt], O == 2 ? (e = Zt, n = Qt) : e == n && (O == 3 ? [e, n] = nn(e, e, D.log, !1) : O == 4 ? [e, n] = rn(e, e, D.log, !1) : D.time ? n = e + vn(86400 / _) : [e, n] = ln(e, n, an, !0))) : (Zt = $t[0] = e = null, Qt = $t[1] = n = null)), ii(S, e, n);
	}
	let fn, pn, mn, _n, Cn, Tn, kn, Mn, Nn, Rn;
	function zn(e, t, n, r, i, a) {
		e ??= _t, n ??= qn, r ??= "butt", i ??= _t, a ??= "round", e != fn && (d.strokeStyle = fn = e), i != pn && (d.fillStyle = pn = i), t != mn && (d.lineWidth = mn = t), a != Cn && (d.lineJoin = Cn = a), r != Tn && (d.lineCap = Tn = r), n != _n && d.setLineDash(_n = n);
	}
	function Vn(e, t, n, r) {
		t != pn && (d.fillStyle = pn = t), e != kn && (d.font = kn = e), n != Mn && (d.textAlign = Mn = n), r != Nn && (d.textBaseline = Nn = r);
	}
	function Hn(e, t, n, i, a = 0) {
		if (i.length > 0 && e.auto(r, sn) && (t == null || t.min == null)) {
			let t = K(Zt, 0), r = K(Qt, i.length - 1), o = n.min == null ? tn(i, t, r, a, e.distr == 3) : [n.min, n.max];
			e.min = bn(e.min, n.min = o[0]), e.max = xn(e.max, n.max = o[1]);
		}
	}
	let Gn = {
		min: null,
		max: null
	};
	function Xn() {
		for (let e in b) {
			let t = b[e];
			j[e] == null && (t.min == null || j[S] != null && t.auto(r, sn)) && (j[e] = Gn);
		}
		for (let e in b) {
			let t = b[e];
			j[e] == null && t.from != null && j[t.from] != null && (j[e] = Gn);
		}
		j[S] != null && _r(!0);
		let e = {};
		for (let t in j) {
			let n = j[t];
			if (n != null) {
				let a = e[t] = rr(b[t], er);
				if (n.min != null) ir(a, n);
				else if (t != S || i == 2) {
					if (Xt == 0 && a.from == null) {
						let e = a.range(r, null, null, t);
						a.min = e[0], a.max = e[1];
					} else a.min = On, a.max = -Infinity;
				}
			}
		}
		if (Xt > 0) {
			v.forEach((n, a) => {
				if (i == 1) {
					let i = n.scale, o = j[i];
					if (o == null) return;
					let s = e[i];
					if (a == 0) {
						let e = s.range(r, s.min, s.max, i);
						s.min = e[0], s.max = e[1], Zt = Yt(s.min, t[0]), Qt = Yt(s.max, t[0]), Qt - Zt > 1 && (t[0][Zt] < s.min && Zt++, t[0][Qt] > s.max && Qt--), n.min = en[Zt], n.max = en[Qt];
					} else n.show && n.auto && Hn(s, o, n, t[a], n.sorted);
					n.idxs[0] = Zt, n.idxs[1] = Qt;
				} else if (a > 0 && n.show && n.auto) {
					let [r, i] = n.facets, o = r.scale, s = i.scale, [c, l] = t[a], u = e[o], d = e[s];
					u != null && Hn(u, j[o], r, c, r.sorted), d != null && Hn(d, j[s], i, l, i.sorted), n.min = i.min, n.max = i.max;
				}
			});
			for (let t in e) {
				let n = e[t], i = j[t];
				if (n.from == null && (i == null || i.min == null)) {
					let e = n.range(r, n.min == On ? null : n.min, n.max == -Infinity ? null : n.max, t);
					n.min = e[0], n.max = e[1];
				}
			}
		}
		for (let t in e) {
			let n = e[t];
			if (n.from != null) {
				let i = e[n.from];
				if (i.min == null) n.min = n.max = null;
				else {
					let e = n.range(r, i.min, i.max, t);
					n.min = e[0], n.max = e[1];
				}
			}
		}
		let n = {}, a = !1;
		for (let t in e) {
			let r = e[t], i = b[t];
			if (i.min != r.min || i.max != r.max) {
				i.min = r.min, i.max = r.max;
				let e = i.distr;
				i._min = e == 3 ? wn(i.min) : e == 4 ? Dn(i.min, i.asinh) : e == 100 ? i.fwd(i.min) : i.min, i._max = e == 3 ? wn(i.max) : e == 4 ? Dn(i.max, i.asinh) : e == 100 ? i.fwd(i.max) : i.max, n[t] = a = !0;
			}
		}
		if (a) {
			v.forEach((e, t) => {
				i == 2 ? t > 0 && n.y && (e._paths = null) : n[e.scale] && (e._paths = null);
			});
			for (let e in n) Ae = !0, fa("setScale", e);
			ie && F.left >= 0 && (je = Ne = !0);
		}
		for (let e in j) j[e] = null;
	}
	function tr(e) {
		let t = An(Zt - 1, 0, Xt - 1), n = An(Qt + 1, 0, Xt - 1);
		for (; e[t] == null && t > 0;) t--;
		for (; e[n] == null && n < Xt - 1;) n++;
		return [t, n];
	}
	function nr() {
		if (Xt > 0) {
			let e = v.some((e) => e._focus) && Rn != He.alpha;
			e && (d.globalAlpha = Rn = He.alpha), v.forEach((e, n) => {
				if (n > 0 && e.show && (ar(n, !1), ar(n, !0), e._paths == null)) {
					let a = Rn;
					Rn != e.alpha && (d.globalAlpha = Rn = e.alpha);
					let o = i == 2 ? [0, t[n][0].length - 1] : tr(t[n]);
					e._paths = e.paths(r, n, o[0], o[1]), Rn != a && (d.globalAlpha = Rn = a);
				}
			}), v.forEach((e, t) => {
				if (t > 0 && e.show) {
					let n = Rn;
					Rn != e.alpha && (d.globalAlpha = Rn = e.alpha), e._paths != null && or(t, !1);
					{
						let n = e._paths == null ? null : e._paths.gaps, i = e.points.show(r, t, Zt, Qt, n), a = e.points.filter(r, t, i, n);
						(i || a) && (e.points._paths = e.points.paths(r, t, Zt, Qt, a), or(t, !0));
					}
					Rn != n && (d.globalAlpha = Rn = n), fa("drawSeries", t);
				}
			}), e && (d.globalAlpha = Rn = 1);
		}
	}
	function ar(e, t) {
		let n = t ? v[e].points : v[e];
		n._stroke = n.stroke(r, e), n._fill = n.fill(r, e);
	}
	function or(e, t) {
		let n = t ? v[e].points : v[e], { stroke: r, fill: i, clip: a, flags: o, _stroke: s = n._stroke, _fill: c = n._fill, _width: l = n.width } = n._paths;
		l = J(l * W, 3);
		let u = null, f = l % 2 / 2;
		t && c == null && (c = l > 0 ? "#fff" : s);
		let p = n.pxAlign == 1 && f > 0;
		if (p && d.translate(f, f), !t) {
			let e = we - l / 2, t = Te - l / 2, n = Ee + l, r = De + l;
			u = new Path2D(), u.rect(e, t, n, r);
		}
		t ? cr(s, l, n.dash, n.cap, c, r, i, o, a) : sr(e, s, l, n.dash, n.cap, c, r, i, o, u, a), p && d.translate(-f, -f);
	}
	function sr(e, n, i, a, o, s, c, l, u, d, f) {
		let p = !1;
		u != 0 && x.forEach((m, h) => {
			if (m.series[0] == e) {
				let e = v[m.series[1]], g = t[m.series[1]], _ = (e._paths || Kn).band;
				Yn(_) && (_ = m.dir == 1 ? _[0] : _[1]);
				let y, b = null;
				e.show && _ && un(g, Zt, Qt) ? (b = m.fill(r, h) || s, y = e._paths.clip) : _ = null, cr(n, i, a, o, b, c, l, u, d, f, y, _), p = !0;
			}
		}), p || cr(n, i, a, o, s, c, l, u, d, f);
	}
	function cr(e, t, n, r, i, a, o, s, c, l, u, f) {
		zn(e, t, n, r, i), (c || l || f) && (d.save(), c && d.clip(c), l && d.clip(l)), f ? (s & 3) == 3 ? (d.clip(f), u && d.clip(u), dr(i, o), lr(e, a, t)) : s & Ki ? (dr(i, o), d.clip(f), lr(e, a, t)) : s & Gi && (d.save(), d.clip(f), u && d.clip(u), dr(i, o), d.restore(), lr(e, a, t)) : (dr(i, o), lr(e, a, t)), (c || l || f) && d.restore();
	}
	function lr(e, t, n) {
		n > 0 && (t instanceof Map ? t.forEach((e, t) => {
			d.strokeStyle = fn = t, d.stroke(e);
		}) : t != null && e && d.stroke(t));
	}
	function dr(e, t) {
		t instanceof Map ? t.forEach((e, t) => {
			d.fillStyle = pn = t, d.fill(e);
		}) : t != null && e && d.fill(t);
	}
	function fr(e, t, n, i) {
		let a = y[e], o;
		if (i <= 0) o = [0, 0];
		else {
			let s = a._space = a.space(r, e, t, n, i);
			o = La(t, n, a._incrs = a.incrs(r, e, t, n, i, s), i, s);
		}
		return a._found = o;
	}
	function pr(e, t, n, r, i, a, o, s, c, l) {
		let u = o % 2 / 2;
		h == 1 && d.translate(u, u), zn(s, o, c, l, s), d.beginPath();
		let f, p, m, g, _ = i + (r == 0 || r == 3 ? -a : a);
		n == 0 ? (p = i, g = _) : (f = i, m = _);
		for (let r = 0; r < e.length; r++) t[r] != null && (n == 0 ? f = m = e[r] : p = g = e[r], d.moveTo(f, p), d.lineTo(m, g));
		d.stroke(), h == 1 && d.translate(-u, -u);
	}
	function mr(e) {
		let t = !0;
		return y.forEach((n, i) => {
			if (!n.show) return;
			let a = b[n.scale];
			if (a.min == null) {
				n._show && (t = !1, n._show = !1, _r(!1));
				return;
			}
			n._show || (t = !1, n._show = !0, _r(!1));
			let o = n.side, s = o % 2, { min: c, max: l } = a, [u, d] = fr(i, c, l, s == 0 ? V : H);
			if (d == 0) return;
			let f = a.distr == 2, p = n._splits = n.splits(r, i, c, l, u, d, f), m = a.distr == 2 ? p.map((e) => en[e]) : p, h = a.distr == 2 ? en[p[1]] - en[p[0]] : u, g = n._values = n.values(r, n.filter(r, m, i, d, h), i, d, h);
			n._rotate = o == 2 ? n.rotate(r, g, i, d) : 0;
			let _ = n._size;
			n._size = yn(n.size(r, g, i, e)), _ != null && n._size != _ && (t = !1);
		}), t;
	}
	function hr(e) {
		let t = !0;
		return Gt.forEach((n, i) => {
			let a = n(r, i, zt, e);
			a != Kt[i] && (t = !1), Kt[i] = a;
		}), t;
	}
	function gr() {
		for (let e = 0; e < y.length; e++) {
			let t = y[e];
			if (!t.show || !t._show) continue;
			let n = t.side, i = n % 2, a, o, c = t.stroke(r, e), l = n == 0 || n == 3 ? -1 : 1, [u, f] = t._found;
			if (t.label != null) {
				let s = t.labelGap * l, p = vn((t._lpos + s) * W);
				Vn(t.labelFont[0], c, "center", n == 2 ? ft : pt), d.save(), i == 1 ? (a = o = 0, d.translate(p, vn(Te + De / 2)), d.rotate((n == 3 ? -hn : hn) / 2)) : (a = vn(we + Ee / 2), o = p);
				let m = jn(t.label) ? t.label(r, e, u, f) : t.label;
				d.fillText(m, a, o), d.restore();
			}
			if (f == 0) continue;
			let p = b[t.scale], m = i == 0 ? Ee : De, h = i == 0 ? we : Te, _ = t._splits, v = p.distr == 2 ? _.map((e) => en[e]) : _, x = p.distr == 2 ? en[_[1]] - en[_[0]] : u, S = t.ticks, C = t.border, w = S.show ? S.size : 0, T = vn(w * W), E = vn((t.alignTo == 2 ? t._size - w - t.gap : t.gap) * W), D = t._rotate * -hn / 180, O = g(t._pos * W), k = O + (T + E) * l;
			o = i == 0 ? k : 0, a = i == 1 ? k : 0;
			let A = t.font[0];
			Vn(A, c, t.align == 1 ? mt : t.align == 2 ? ht : D > 0 ? mt : D < 0 ? ht : i == 0 ? "center" : n == 3 ? ht : mt, D || i == 1 ? "middle" : n == 2 ? ft : pt);
			let j = t.font[1] * t.lineGap, M = _.map((e) => g(s(e, p, m, h))), ee = t._values;
			for (let e = 0; e < ee.length; e++) {
				let t = ee[e];
				if (t != null) {
					i == 0 ? a = M[e] : o = M[e], t = "" + t;
					let n = t.indexOf("\n") == -1 ? [t] : t.split(/\n/gm);
					for (let e = 0; e < n.length; e++) {
						let t = n[e];
						D ? (d.save(), d.translate(a, o + e * j), d.rotate(D), d.fillText(t, 0, 0), d.restore()) : d.fillText(t, a, o + e * j);
					}
				}
			}
			S.show && pr(M, S.filter(r, v, e, f, x), i, n, O, T, J(S.width * W, 3), S.stroke(r, e), S.dash, S.cap);
			let N = t.grid;
			N.show && pr(M, N.filter(r, v, e, f, x), i, i == 0 ? 2 : 1, i == 0 ? Te : we, i == 0 ? De : Ee, J(N.width * W, 3), N.stroke(r, e), N.dash, N.cap), C.show && pr([O], [1], +(i == 0), i == 0 ? 1 : 2, i == 1 ? Te : we, i == 1 ? De : Ee, J(C.width * W, 3), C.stroke(r, e), C.dash, C.cap);
		}
		fa("drawAxes");
	}
	function _r(e) {
		v.forEach((t, n) => {
			n > 0 && (t._paths = null, e && (i == 1 ? (t.min = null, t.max = null) : t.facets.forEach((e) => {
				e.min = null, e.max = null;
			})));
		});
	}
	let vr = !1, yr = !1, br = [];
	function xr() {
		yr = !1;
		for (let e = 0; e < br.length; e++) fa(...br[e]);
		br.length = 0;
	}
	function Cr() {
		vr ||= (ur(Tr), !0);
	}
	function wr(e, t = !1) {
		vr = !0, yr = t, e(r), Tr(), t && br.length > 0 && queueMicrotask(xr);
	}
	r.batch = wr;
	function Tr() {
		if (Oe &&= (Xn(), !1), Ae &&= (Ie(), !1), ke) {
			if (G(p, mt, ye), G(p, ft, U), G(p, ut, V), G(p, dt, H), G(m, mt, ye), G(m, ft, U), G(m, ut, V), G(m, dt, H), G(f, ut, ve), G(f, dt, B), u.width = vn(ve * W), u.height = vn(B * W), y.forEach(({ _el: e, _show: t, _size: n, _pos: r, side: i }) => {
				if (e != null) {
					if (t) {
						let t = i === 3 || i === 0 ? n : 0, a = i % 2 == 1;
						G(e, a ? "left" : "top", r - t), G(e, a ? "width" : "height", n), G(e, a ? "top" : "left", a ? U : ye), G(e, a ? "height" : "width", a ? H : V), It(e, Qe);
					} else Ft(e, Qe);
				}
			}), fn = pn = mn = Cn = Tn = kn = Mn = Nn = _n = null, Rn = 1, Ji(!0), ye != be || U != xe || V != Se || H != Ce) {
				_r(!1);
				let e = V / Se, t = H / Ce;
				if (ie && !je && F.left >= 0) {
					F.left *= e, F.top *= t, jr && Bt(jr, vn(F.left), 0, V, H), Mr && Bt(Mr, 0, vn(F.top), V, H);
					for (let n = 0; n < wt.length; n++) {
						let r = wt[n];
						r != null && (Tt[n] *= e, Et[n] *= t, Bt(r, yn(Tt[n]), yn(Et[n]), V, H));
					}
				}
				if (Q.show && !Me && Q.left >= 0 && Q.width > 0) {
					Q.left *= e, Q.width *= e, Q.top *= t, Q.height *= t;
					for (let e in Qi) G(ti, e, Q[e]);
				}
				be = ye, xe = U, Se = V, Ce = H;
			}
			fa("setSize"), ke = !1;
		}
		ve > 0 && B > 0 && (d.clearRect(0, 0, u.width, u.height), fa("drawClear"), w.forEach((e) => e()), fa("draw")), Q.show && Me && (ni(Q), Me = !1), ie && je && (Ui(null, !0, !1), je = !1), re.show && re.live && Ne && (Ii(), Ne = !1), c || (c = !0, r.status = 1, fa("ready")), sn = !1, vr = !1;
	}
	r.redraw = (e, t) => {
		Ae = t || !1, e === !1 ? Cr() : ii(S, D.min, D.max);
	};
	function Er(e, n) {
		let i = b[e];
		if (i.from == null) {
			if (Xt == 0) {
				let t = i.range(r, n.min, n.max, e);
				n.min = t[0], n.max = t[1];
			}
			if (n.min > n.max) {
				let e = n.min;
				n.min = n.max, n.max = e;
			}
			if (Xt > 1 && n.min != null && n.max != null && n.max - n.min < 1e-16) return;
			e == S && i.distr == 2 && Xt > 0 && (n.min = Yt(n.min, t[0]), n.max = Yt(n.max, t[0]), n.min == n.max && n.max++), j[e] = n, Oe = !0, Cr();
		}
	}
	r.setScale = Er;
	let Dr, Or, jr, Mr, Nr, Pr, Fr, Ir, Lr, Rr, Y, X, Z = !1, zr = F.drag, Yr = zr.x, $r = zr.y;
	ie && (F.x && (Dr = Rt(et, m)), F.y && (Or = Rt(tt, m)), D.ori == 0 ? (jr = Dr, Mr = Or) : (jr = Or, Mr = Dr), Y = F.left, X = F.top);
	let Q = r.select = ir({
		show: !0,
		over: !0,
		left: 0,
		width: 0,
		top: 0,
		height: 0
	}, e.select), ti = Q.show ? Rt($e, Q.over ? m : p) : null;
	function ni(e, t) {
		if (Q.show) {
			for (let t in e) Q[t] = e[t], t in Qi && G(ti, t, e[t]);
			t !== !1 && fa("setSelect");
		}
	}
	r.setSelect = ni;
	function ri(e) {
		if (v[e].show) I && It(oe[e], Qe);
		else if (I && Ft(oe[e], Qe), ie) {
			let t = gt ? wt[0] : wt[e];
			t != null && Bt(t, -10, -10, V, H);
		}
	}
	function ii(e, t, n) {
		Er(e, {
			min: t,
			max: n
		});
	}
	function ai(e, t, n, a) {
		t.focus != null && hi(e), t.show != null && v.forEach((n, r) => {
			r > 0 && (e == r || e == null) && (n.show = t.show, ri(r), i == 2 ? (ii(n.facets[0].scale, null, null), ii(n.facets[1].scale, null, null)) : ii(n.scale, null, null), Cr());
		}), n !== !1 && fa("setSeries", e, t), a && _a("setSeries", r, e, t);
	}
	r.setSeries = ai;
	function oi(e, t) {
		ir(x[e], t);
	}
	function si(e, t) {
		e.fill = q(e.fill || null), e.dir = K(e.dir, -1), t ??= x.length, x.splice(t, 0, e);
	}
	function ci(e) {
		e == null ? x.length = 0 : x.splice(e, 1);
	}
	r.addBand = si, r.setBand = oi, r.delBand = ci;
	function ui(e, t) {
		v[e].alpha = t, ie && wt[e] != null && (wt[e].style.opacity = t), I && oe[e] && (oe[e].style.opacity = t);
	}
	let di, fi, pi, mi = { focus: !0 };
	function hi(e) {
		if (e != pi) {
			let t = e == null, n = He.alpha != 1;
			v.forEach((r, a) => {
				if (i == 1 || a > 0) {
					let i = t || a == 0 || a == e;
					r._focus = t ? null : i, n && ui(a, i ? 1 : He.alpha);
				}
			}), pi = e, n && Cr();
		}
	}
	I && Ue && ge(St, R, (e) => {
		F._lock || (Be(e), pi != null && ai(null, mi, !0, ma.setSeries));
	});
	function gi(e, t, n) {
		let r = b[t];
		n && (e = e / W - (r.ori == 1 ? U : ye));
		let i = V;
		r.ori == 1 && (i = H, e = i - e), r.dir == -1 && (e = i - e);
		let a = r._min, o = r._max, s = e / i, c = a + (o - a) * s, l = r.distr;
		return l == 3 ? Sn(10, c) : l == 4 ? En(c, r.asinh) : l == 100 ? r.bwd(c) : c;
	}
	function Ti(e, n) {
		return Yt(gi(e, S, n), t[0], Zt, Qt);
	}
	r.valToIdx = (e) => Yt(e, t[0]), r.posToIdx = Ti, r.posToVal = gi, r.valToPos = (e, t, n) => b[t].ori == 0 ? a(e, b[t], n ? Ee : V, n ? we : 0) : o(e, b[t], n ? De : H, n ? Te : 0), r.setCursor = (e, t, n) => {
		Y = e.left, X = e.top, Ui(null, t, n);
	};
	function Ei(e, t) {
		G(ti, mt, Q.left = e), G(ti, ut, Q.width = t);
	}
	function Di(e, t) {
		G(ti, ft, Q.top = e), G(ti, dt, Q.height = t);
	}
	let Oi = D.ori == 0 ? Ei : Di, ki = D.ori == 1 ? Ei : Di;
	function Fi() {
		if (I && re.live) for (let e = +(i == 2); e < v.length; e++) {
			if (e == 0 && le) continue;
			let t = re.values[e], n = 0;
			for (let r in t) se[e][n++].firstChild.nodeValue = t[r];
		}
	}
	function Ii(e, t) {
		if (e != null && (e.idxs ? e.idxs.forEach((e, t) => {
			P[t] = e;
		}) : Zn(e.idx) || P.fill(e.idx), re.idx = P[0]), I && re.live) {
			for (let e = 0; e < v.length; e++) (e > 0 || i == 1 && !le) && Li(e, P[e]);
			Fi();
		}
		Ne = !1, t !== !1 && fa("setLegend");
	}
	r.setLegend = Ii;
	function Li(e, n) {
		let i = v[e], a = e == 0 && O == 2 ? en : t[e], o;
		le ? o = i.values(r, e, n) ?? ue : (o = i.value(r, n == null ? null : a[n], e, n), o = o == null ? ue : { _: o }), re.values[e] = o;
	}
	function Ui(e, n, a) {
		Lr = Y, Rr = X, [Y, X] = F.move(r, Y, X), F.left = Y, F.top = X, ie && (jr && Bt(jr, vn(Y), 0, V, H), Mr && Bt(Mr, 0, vn(X), V, H));
		let o, s = Zt > Qt;
		di = On, fi = null;
		let c = D.ori == 0 ? V : H, l = D.ori == 1 ? V : H;
		if (Y < 0 || Xt == 0 || s) {
			o = F.idx = null;
			for (let e = 0; e < v.length; e++) {
				let t = wt[e];
				t != null && Bt(t, -10, -10, V, H);
			}
			Ue && ai(null, mi, !0, e == null && ma.setSeries), re.live && (P.fill(o), Ne = !0);
		} else {
			let e, n, a;
			i == 1 && (e = D.ori == 0 ? Y : X, n = gi(e, S), o = F.idx = Yt(n, t[0], Zt, Qt), a = k(t[0][o], D, c, 0));
			let s = -10, u = -10, d = 0, f = 0, p = !0, m = "", h = "";
			for (let e = +(i == 2); e < v.length; e++) {
				let g = v[e], _ = P[e], y = _ == null ? null : i == 1 ? t[e][_] : t[e][1][_], x = F.dataIdx(r, e, o, n), S = x == null ? null : i == 1 ? t[e][x] : t[e][1][x];
				if (Ne = Ne || S != y || x != _, P[e] = x, e > 0 && g.show) {
					let n = x == null ? -10 : x == o ? a : k(i == 1 ? t[0][x] : t[e][0][x], D, c, 0), _ = S == null ? -10 : A(S, i == 1 ? b[g.scale] : b[g.facets[1].scale], l, 0);
					if (Ue && S != null) {
						let t = D.ori == 1 ? Y : X, n = gn(He.dist(r, e, x, _, t));
						if (n < di) {
							let r = He.bias;
							if (r != 0) {
								let i = gi(t, g.scale), a = S >= 0 ? 1 : -1, o = i >= 0 ? 1 : -1;
								o == a && (o == 1 ? r == 1 ? S >= i : S <= i : r == 1 ? S <= i : S >= i) && (di = n, fi = e);
							} else di = n, fi = e;
						}
					}
					if (Ne || gt) {
						let t, i;
						D.ori == 0 ? (t = n, i = _) : (t = _, i = n);
						let a, o, c, l, g, v, y = !0, b = Ve.bbox;
						if (b != null) {
							y = !1;
							let t = b(r, e);
							c = t.left, l = t.top, a = t.width, o = t.height;
						} else c = t, l = i, a = o = Ve.size(r, e);
						if (v = Ve.fill(r, e), g = Ve.stroke(r, e), gt) e == fi && di <= He.prox && (s = c, u = l, d = a, f = o, p = y, m = v, h = g);
						else {
							let t = wt[e];
							t != null && (Tt[e] = c, Et[e] = l, Wt(t, a, o, y), Ht(t, v, g), Bt(t, yn(c), yn(l), V, H));
						}
					}
				}
			}
			if (gt) {
				let e = He.prox;
				if (Ne || (pi == null ? di <= e : di > e || fi != pi)) {
					let e = wt[0];
					e != null && (Tt[0] = s, Et[0] = u, Wt(e, d, f, p), Ht(e, m, h), Bt(e, yn(s), yn(u), V, H));
				}
			}
		}
		if (Q.show && Z) {
			if (e != null) {
				let [t, n] = ma.scales, [r, i] = ma.match, [a, o] = e.cursor.sync.scales, s = e.cursor.drag;
				if (Yr = s._x, $r = s._y, Yr || $r) {
					let { left: s, top: u, width: d, height: f } = e.select, p = e.scales[a].ori, m = e.posToVal, h, g, _, v, y, x = t != null && r(t, a), S = n != null && i(n, o);
					x && Yr ? (p == 0 ? (h = s, g = d) : (h = u, g = f), _ = b[t], v = k(m(h, a), _, c, 0), y = k(m(h + g, a), _, c, 0), Oi(bn(v, y), gn(y - v))) : Oi(0, c), S && $r ? (p == 1 ? (h = s, g = d) : (h = u, g = f), _ = b[n], v = A(m(h, o), _, l, 0), y = A(m(h + g, o), _, l, 0), ki(bn(v, y), gn(y - v))) : ki(0, l);
				} else $i();
			} else {
				let e = gn(Lr - Nr), t = gn(Rr - Pr);
				if (D.ori == 1) {
					let n = e;
					e = t, t = n;
				}
				Yr = zr.x && e >= zr.dist, $r = zr.y && t >= zr.dist;
				let n = zr.uni;
				n == null ? zr.x && zr.y && (Yr || $r) && (Yr = $r = !0) : Yr && $r && (Yr = e >= n, $r = t >= n, !Yr && !$r && (t > e ? $r = !0 : Yr = !0));
				let r, i;
				Yr && (D.ori == 0 ? (r = Fr, i = Y) : (r = Ir, i = X), Oi(bn(r, i), gn(i - r)), $r || ki(0, l)), $r && (D.ori == 1 ? (r = Fr, i = Y) : (r = Ir, i = X), ki(bn(r, i), gn(i - r)), Yr || Oi(0, c)), !Yr && !$r && (Oi(0, 0), ki(0, 0));
			}
		}
		if (zr._x = Yr, zr._y = $r, e == null) {
			if (a) {
				if (ha != null) {
					let [e, t] = ma.scales;
					ma.values[0] = e == null ? null : gi(D.ori == 0 ? Y : X, e), ma.values[1] = t == null ? null : gi(D.ori == 1 ? Y : X, t);
				}
				_a(vt, r, Y, X, V, H, o);
			}
			if (Ue) {
				let e = a && ma.setSeries, t = He.prox;
				pi == null ? di <= t && ai(fi, mi, !0, e) : di > t ? ai(null, mi, !0, e) : fi != pi && ai(fi, mi, !0, e);
			}
		}
		Ne && (re.idx = o, Ii()), n !== !1 && fa("setCursor");
	}
	let qi = null;
	Object.defineProperty(r, "rect", { get() {
		return qi ?? Ji(!1), qi;
	} });
	function Ji(e = !1) {
		e ? qi = null : (qi = m.getBoundingClientRect(), fa("syncRect", qi));
	}
	function Xi(e, t, n, r, i, a, o) {
		F._lock || Z && e != null && e.movementX == 0 && e.movementY == 0 || (Zi(e, t, n, r, i, a, o, !1, e != null), e == null ? Ui(t, !0, !1) : Ui(null, !0, !0));
	}
	function Zi(e, t, n, i, a, o, c, l, u) {
		if (qi ?? Ji(!1), Be(e), e != null) n = e.clientX - qi.left, i = e.clientY - qi.top;
		else {
			if (n < 0 || i < 0) {
				Y = -10, X = -10;
				return;
			}
			let [e, r] = ma.scales, c = t.cursor.sync, [l, u] = c.values, [d, f] = c.scales, [p, m] = ma.match, h = t.axes[0].side % 2 == 1, g = D.ori == 0 ? V : H, _ = D.ori == 1 ? V : H, v = h ? o : a, y = h ? a : o, x = h ? i : n, S = h ? n : i;
			if (n = d == null ? x / v * g : p(e, d) ? s(l, b[e], g, 0) : -10, i = f == null ? S / y * _ : m(r, f) ? s(u, b[r], _, 0) : -10, D.ori == 1) {
				let e = n;
				n = i, i = e;
			}
		}
		u && (t == null || t.cursor.event.type == vt) && ((n <= 1 || n >= V - 1) && (n = Bn(n, V)), (i <= 1 || i >= H - 1) && (i = Bn(i, H))), l ? (Nr = n, Pr = i, [Fr, Ir] = F.move(r, n, i)) : (Y = n, X = i);
	}
	let Qi = {
		width: 0,
		height: 0,
		left: 0,
		top: 0
	};
	function $i() {
		ni(Qi, !1);
	}
	let ta, na, ra, ia;
	function aa(e, t, n, i, a, o, s) {
		Z = !0, Yr = $r = zr._x = zr._y = !1, Zi(e, t, n, i, a, o, s, !0, !1), e != null && (ge(bt, At, oa, !1), _a(yt, r, Fr, Ir, V, H, null));
		let { left: c, top: l, width: u, height: d } = Q;
		ta = c, na = l, ra = u, ia = d;
	}
	function oa(e, t, n, i, a, o, s) {
		Z = zr._x = zr._y = !1, Zi(e, t, n, i, a, o, s, !1, !0);
		let { left: c, top: l, width: u, height: d } = Q, f = u > 0 || d > 0, p = ta != c || na != l || ra != u || ia != d;
		if (f && p && ni(Q), zr.setScale && f && p) {
			let e = c, t = u, n = l, r = d;
			if (D.ori == 1 && (e = l, t = d, n = c, r = u), Yr && ii(S, gi(e, S), gi(e + t, S)), $r) for (let e in b) {
				let t = b[e];
				e != S && t.from == null && t.min != On && ii(e, gi(n + r, e), gi(n, e));
			}
			$i();
		} else F.lock && (F._lock = !F._lock, Ui(t, !0, e != null));
		e != null && (_e(bt, At), _a(bt, r, Y, X, V, H, null));
	}
	function sa(e, t, n, r, i, a, o) {
		if (F._lock) return;
		Be(e);
		let s = Z;
		if (Z) {
			let e = !0, t = !0, n, r;
			D.ori == 0 ? (n = Yr, r = $r) : (n = $r, r = Yr), n && r && (e = Y <= 10 || Y >= V - 10, t = X <= 10 || X >= H - 10), n && e && (Y = Y < Fr ? 0 : V), r && t && (X = X < Ir ? 0 : H), Ui(null, !0, !0), Z = !1;
		}
		Y = -10, X = -10, P.fill(null), Ui(null, !0, !0), s && (Z = s);
	}
	function ca(e, t, n, i, a, o, s) {
		F._lock || (Be(e), dn(), $i(), e != null && _a(Ct, r, Y, X, V, H, null));
	}
	function la() {
		y.forEach(za), Pe(r.width, r.height, !0);
	}
	qt(Dt, jt, la);
	let ua = {};
	ua.mousedown = aa, ua.mousemove = Xi, ua.mouseup = oa, ua.dblclick = ca, ua.setSeries = (e, t, n, i) => {
		let a = ma.match[2];
		n = a(r, t, n), n != -1 && ai(n, i, !0, !1);
	}, ie && (ge(yt, m, aa), ge(vt, m, Xi), ge(xt, m, (e) => {
		Be(e), Ji(!1);
	}), ge(St, m, sa), ge(Ct, m, ca), Ca.add(r), r.syncRect = Ji);
	let da = r.hooks = e.hooks || {};
	function fa(e, t, n) {
		yr ? br.push([
			e,
			t,
			n
		]) : e in da && da[e].forEach((e) => {
			e.call(null, r, t, n);
		});
	}
	(e.plugins || []).forEach((e) => {
		for (let t in e.hooks) da[t] = (da[t] || []).concat(e.hooks[t]);
	});
	let pa = (e, t, n) => n, ma = ir({
		key: null,
		setSeries: !1,
		filters: {
			pub: In,
			sub: In
		},
		scales: [S, v[1] ? v[1].scale : null],
		match: [
			Ln,
			Ln,
			pa
		],
		values: [null, null]
	}, F.sync);
	ma.match.length == 2 && ma.match.push(pa), F.sync = ma;
	let ha = ma.key, ga = Wi(ha);
	function _a(e, t, n, r, i, a, o) {
		ma.filters.pub(e, t, n, r, i, a, o) && ga.pub(e, t, n, r, i, a, o);
	}
	ga.sub(r);
	function va(e, t, n, r, i, a, o) {
		ma.filters.sub(e, t, n, r, i, a, o) && ua[e](null, t, n, r, i, a, o);
	}
	r.pub = va;
	function ya() {
		ga.unsub(r), Ca.delete(r), he.clear(), Jt(Dt, jt, la), l.remove(), R?.remove(), fa("destroy");
	}
	r.destroy = ya;
	function ba() {
		fa("init", e, t), cn(t || e.data, !1), j[S] ? Er(S, j[S]) : dn(), Me = Q.show && (Q.width > 0 || Q.height > 0), je = Ne = !0, Pe(e.width, e.height);
	}
	return v.forEach(Mt), y.forEach(Vt), n ? n instanceof HTMLElement ? (n.appendChild(l), ba()) : n(r, ba) : ba(), r;
}
Ba.assign = ir, Ba.fmtNum = pn, Ba.rangeNum = ln, Ba.rangeLog = nn, Ba.rangeAsinh = rn, Ba.orient = qi, Ba.pxRatio = W, Ba.join = lr, Ba.fmtDate = Sr, Ba.tzDate = wr, Ba.sync = Wi;
{
	Ba.addGap = Qi, Ba.clipGaps = Zi;
	let e = Ba.paths = { points: fa };
	e.linear = ga, e.stepped = _a, e.bars = ya, e.spline = xa;
}
// src/colours.ts
var Va = {
	train: "#7b3fa0",
	test: "#e66f00",
	random: "#2a7fc1",
	uniform: "#2a7fc1"
}, Ha = [
	"#1b8a6b",
	"#b8437f",
	"#777777",
	"#8c6d1f"
], Ua = "#d62728";
function Wa(e, t, n) {
	let r = Va[e] ?? Ha[t % Ha.length];
	return n ? `#${Xa(Ga(r), [
		255,
		255,
		255
	], .4).map((e) => Math.round(e).toString(16).padStart(2, "0")).join("")}` : r;
}
function Ga(e) {
	return [
		1,
		3,
		5
	].map((t) => parseInt(e.slice(t, t + 2), 16));
}
var Ka = [
	[
		86,
		180,
		233
	],
	[
		230,
		159,
		0
	],
	[
		0,
		158,
		115
	],
	[
		240,
		228,
		66
	],
	[
		204,
		121,
		167
	],
	[
		0,
		114,
		178
	],
	[
		213,
		94,
		0
	],
	[
		153,
		153,
		153
	],
	[
		145,
		92,
		200
	],
	[
		170,
		205,
		120
	]
];
function qa(e) {
	return e < Ka.length ? Ka[Math.max(e, 0)] : Za(e * .618034, .55, .6);
}
var Ja = [
	[
		68,
		1,
		84
	],
	[
		71,
		44,
		122
	],
	[
		59,
		81,
		139
	],
	[
		44,
		113,
		142
	],
	[
		33,
		144,
		141
	],
	[
		39,
		173,
		129
	],
	[
		92,
		200,
		99
	],
	[
		170,
		220,
		50
	],
	[
		253,
		231,
		37
	]
];
function Ya(e) {
	let t = Math.min(Math.max(e, 0), 1) * (Ja.length - 1), n = Math.min(Math.floor(t), Ja.length - 2);
	return Xa(Ja[n], Ja[n + 1], t - n);
}
function Xa(e, t, n) {
	return [
		0,
		1,
		2
	].map((r) => e[r] + n * (t[r] - e[r]));
}
function Za(e, t, n) {
	let r = (r) => {
		let i = (r + (e - Math.floor(e)) * 12) % 12;
		return 255 * (n - t * Math.min(n, 1 - n) * Math.max(-1, Math.min(i - 3, 9 - i, 1)));
	};
	return [
		r(0),
		r(8),
		r(4)
	];
}
var Qa = ([e, t, n]) => `rgb(${Math.round(e)} ${Math.round(t)} ${Math.round(n)})`;
function $a(e, t, n) {
	let r = t > 1 ? (e - 1) / (t - 1) : 0;
	return n ? Xa(Ya(.45 + .55 * r), [
		255,
		255,
		255
	], .15) : Ya(.75 * r);
}
var eo = {
	class: "class",
	gradient: "gradient norm",
	pattern: "pattern",
	layer: "layer of the last cut",
	size: "region size",
	density: "local complexity density",
	none: "nothing"
}, to = (e, t) => Xa(e, t ? [
	22,
	24,
	29
] : [
	255,
	255,
	255
], .45);
function no(e, t, n) {
	let r = e.piece_class ?? /* @__PURE__ */ new Int16Array(), i = new Uint8Array(4 * (e.cells + r.length)), a = (e, t, n) => {
		for (let r = 0; r < t; r++) ro(i, e + r, n(r));
	}, o = (t, r, i) => {
		let { low: o, high: s } = so(t), c = ao(o, s, n);
		return a(0, e.cells, (e) => c(t[e])), {
			low: o * r,
			high: s * r,
			log: !0,
			label: i
		};
	}, s = (e, t) => Array.from({ length: e }, (e, r) => to(t(r), n)), c = s(e.classes.length, qa), l = s(e.layers + 1, (t) => $a(Math.max(t, 1), e.layers, n)), { scale: u } = e.window;
	return a(e.cells, r.length, (e) => c[r[e]]), t === "gradient" && e.gradient ? {
		rgba: i,
		scale: o(e.gradient, 1, "gradient norm")
	} : t === "size" ? {
		rgba: i,
		scale: o(e.area, u * u, "area of the region")
	} : (t === "class" && e.class ? a(0, e.cells, (t) => c[e.class[t]]) : t === "pattern" ? a(0, e.cells, (t) => to(Za(e.pattern[t] / 2 ** 32, .6, .55), n)) : t === "layer" ? a(0, e.cells, (t) => l[e.layer[t]]) : a(0, e.cells, () => n ? [
		28,
		31,
		37
	] : [
		250,
		250,
		248
	]), {
		rgba: i,
		scale: null
	});
}
function ro(e, t, [n, r, i]) {
	e[4 * t] = n, e[4 * t + 1] = r, e[4 * t + 2] = i, e[4 * t + 3] = 255;
}
var io = 256;
function ao(e, t, n) {
	let r = Array.from({ length: io }, (e, t) => to(Ya(t / 255), n)), i = 255 / (Math.log(t / e) || 1);
	return (t) => r[Math.min(Math.round(i * Math.log(Math.max(t, e) / e)), 255) || 0];
}
function oo(e, t) {
	let { low: n, high: r } = so(e.values), i = new Uint8Array(4 * e.values.length), a = ao(n, r, t);
	e.values.forEach((e, t) => ro(i, t, a(e)));
	let o = e.quantity === "boundary_density" ? 1 / e.window.scale : 1;
	return {
		rgba: i,
		scale: {
			low: n * o,
			high: r * o,
			log: !0,
			label: e.label
		}
	};
}
function so(e) {
	let [t, n] = [Infinity, 0];
	for (let r = 0; r < e.length; r++) {
		let i = e[r];
		i > 0 && i < t && (t = i), i > n && Number.isFinite(i) && (n = i);
	}
	return n ? {
		low: Math.max(t, n * 1e-6),
		high: n
	} : {
		low: 1,
		high: 1
	};
}
// src/words.ts
function co(e, t = 3) {
	if (e == null || !Number.isFinite(e)) return "–";
	let n = Math.abs(e);
	return n !== 0 && (n < .001 || n >= 1e6) ? e.toExponential(t - 1).replace("e+", "e") : Number(e.toPrecision(Math.max(t, n >= 1 ? Math.ceil(Math.log10(n + 1)) : t))).toLocaleString("en");
}
var lo = (e, t) => `${e.toLocaleString("en")} ${t}${e === 1 ? "" : "s"}`;
function uo(e, t) {
	let n = null;
	for (let r of e) (n === null || Math.abs(r - t) < Math.abs(n - t)) && (n = r);
	return n;
}
// node_modules/preact/jsx-runtime/dist/jsxRuntime.mjs
var fo = Symbol.for("pv"), po = 0;
Array.isArray;
function $(e, n, r, i, a, o) {
	n ||= {};
	var s, c, l = n;
	if ("ref" in l && typeof e != "function") for (c in l = {}, n) c == "ref" ? s = n[c] : l[c] = n[c];
	var u = {
		type: e,
		props: l,
		key: r,
		ref: s,
		__k: null,
		__: null,
		__b: 0,
		__e: null,
		__c: null,
		constructor: fo,
		__v: --po,
		__i: -1,
		__u: 0
	};
	return (a || o) && (u.__source = a, u.__self = o), t.vnode && t.vnode(u), u;
}
// src/Charts.tsx
var mo = [
	[],
	[6, 3],
	[2, 2],
	[
		8,
		3,
		2,
		3
	],
	[12, 3]
];
function ho(e) {
	let { curves: t } = e, n = [...t.scalars.filter((e) => e.axis === "accuracy"), ...go(t)], r = t.scalars.filter((e) => e.axis !== "accuracy"), i = t.measures.filter((e) => e.axis !== "accuracy");
	return t.steps.length ? /* @__PURE__ */ $("div", {
		class: "charts",
		children: [
			i.map((t) => /* @__PURE__ */ $(Co, {
				...e,
				title: t.label,
				note: t.kind,
				lines: _o(t, e.dark),
				accuracies: n
			}, t.name)),
			r.length > 0 && /* @__PURE__ */ $(Co, {
				...e,
				title: "loss",
				note: "",
				lines: r.map((t, n) => vo(t, n, e.dark)),
				accuracies: n
			}),
			i.length + r.length === 0 && /* @__PURE__ */ $(Co, {
				...e,
				title: "accuracy",
				note: "",
				lines: [],
				accuracies: n
			}),
			t.phases && /* @__PURE__ */ $(Io, { phases: t.phases }),
			/* @__PURE__ */ $(Lo, { curves: t })
		]
	}) : /* @__PURE__ */ $("p", {
		class: "empty",
		children: "No records as yet."
	});
}
function go(e) {
	return e.measures.filter((e) => e.axis === "accuracy").flatMap((e) => e.probes.map((t) => ({
		name: `${t.name}/${e.name}`,
		label: `${t.name} ${e.label}`,
		axis: "accuracy",
		values: t.mean
	})));
}
function _o(e, t) {
	return e.probes.map((e, n) => ({
		label: e.name,
		values: e.mean,
		low: yo(e.mean, e.stderr, -1),
		high: yo(e.mean, e.stderr, 1),
		hue: Wa(e.name, n, t),
		dash: mo[n % mo.length]
	}));
}
function vo(e, t, n) {
	let r = e.name.split(/[/_]/)[0];
	return {
		label: e.label,
		values: e.values,
		low: null,
		high: null,
		hue: Wa(r, t, n),
		dash: mo[t % mo.length]
	};
}
function yo(e, t, n) {
	return e.map((e, r) => e === null || t[r] === null || t[r] === void 0 ? null : e + n * t[r]);
}
var bo = (e) => Array.from(e).filter((e) => e != null).length === 1, xo = (e, t) => t ? Math.log10(e + 1) : e, So = (e, t) => t ? 10 ** e - 1 : e;
function Co(e) {
	let { curves: t, title: n, note: r, lines: i, accuracies: a, log: o, dark: s, step: c } = e, l = U(null), u = U(null), d = U(e);
	d.current = e;
	let f = be(() => Do(t.steps, i, a, o), [t, o]);
	return H(() => {
		let e = l.current, t = new Ba(Oo(d, i, a, e.clientWidth || 400), f, e);
		u.current = t;
		let n = new ResizeObserver(() => t.setSize({
			width: e.clientWidth || 400,
			height: wo
		}));
		return n.observe(e), () => {
			n.disconnect(), t.destroy();
		};
	}, [
		i.length,
		a.length,
		o,
		s
	]), H(() => u.current?.setData(f), [f]), H(() => u.current?.redraw(!1), [c]), /* @__PURE__ */ $("section", {
		class: "chart",
		"aria-label": `${n}: ${Fo(t, i, c)}`,
		children: [
			/* @__PURE__ */ $("h3", { children: [
				n,
				" ",
				r && /* @__PURE__ */ $("small", { children: r })
			] }),
			/* @__PURE__ */ $("div", { ref: l }),
			/* @__PURE__ */ $("ul", {
				class: "key",
				children: [
					i.map((e) => /* @__PURE__ */ $(To, { line: e }, e.label)),
					a.map((e, t) => /* @__PURE__ */ $(To, { line: Eo(e, t, s) }, e.name)),
					t.steps.length > 1 && i.some((e) => e.low) && /* @__PURE__ */ $("li", { children: "band: ± standard error over points" })
				]
			})
		]
	});
}
var wo = 170;
function To({ line: e }) {
	return /* @__PURE__ */ $("li", { children: [
		/* @__PURE__ */ $("svg", {
			width: "22",
			height: "8",
			"aria-hidden": "true",
			children: bo(e.values) ? /* @__PURE__ */ $("circle", {
				cx: "11",
				cy: "4",
				r: "3",
				stroke: e.hue,
				fill: e.hollow ? "none" : e.hue
			}) : /* @__PURE__ */ $("line", {
				x1: "0",
				y1: "4",
				x2: "22",
				y2: "4",
				stroke: e.hue,
				"stroke-width": "2",
				"stroke-dasharray": e.dash.join(" ")
			})
		}),
		" ",
		e.label
	] });
}
function Eo(e, t, n) {
	return {
		...vo(e, t, n),
		dash: [1, 3],
		hollow: !0
	};
}
function Do(e, t, n, r) {
	let i = t.flatMap((e) => [
		e.values,
		e.low ?? e.values,
		e.high ?? e.values
	]);
	return [
		e.map((e) => xo(e, r)),
		...i,
		...n.map((e) => e.values)
	];
}
function Oo(e, t, n, r) {
	let { log: i, dark: a } = e.current, o = (e) => getComputedStyle(document.querySelector(".explorer")).getPropertyValue(e), s = {
		stroke: () => o("--ink"),
		grid: {
			stroke: o("--line"),
			width: 1
		},
		ticks: { stroke: o("--line") }
	}, c = {
		stroke: "transparent",
		points: { show: !1 }
	}, l = (e) => ({
		show: (e, t) => bo(e.data[t]),
		size: 8,
		fill: e.hollow ? "transparent" : e.hue,
		stroke: e.hue
	}), u = (e, t) => ({
		label: e.label,
		stroke: e.hue,
		width: t,
		dash: e.dash,
		points: l(e),
		spanGaps: !0
	});
	return {
		width: r,
		height: wo,
		legend: { show: !1 },
		scales: {
			x: {
				time: !1,
				range: (e) => Ao(e.data[0])
			},
			share: { range: [0, 1] }
		},
		series: [
			{},
			...t.flatMap((e) => [
				u(e, 2),
				c,
				c
			]),
			...n.map((e, t) => ({
				...u(Eo(e, t, a), 1.5),
				scale: "share"
			}))
		],
		bands: t.flatMap((e, t) => e.low ? [{
			series: [3 * t + 3, 3 * t + 2],
			fill: `${e.hue}22`
		}] : []),
		axes: [
			i ? {
				...s,
				splits: (e) => jo(e.data[0]),
				values: (e, t) => t.map((e) => co(Math.round(So(e, !0)), 2))
			} : {
				...s,
				incrs: ko
			},
			{
				...s,
				size: 56,
				values: (e, t) => t.map((e) => co(e))
			},
			...n.length ? [{
				...s,
				scale: "share",
				side: 1,
				grid: { show: !1 },
				size: 40
			}] : []
		],
		cursor: {
			sync: { key: "regionscope" },
			drag: {
				x: !1,
				y: !1
			},
			y: !1
		},
		hooks: {
			drawClear: [(t) => No(t, e.current.curves.phases, e.current.log, {
				ascent: o("--ascent"),
				descent: o("--descent")
			})],
			draw: [(t) => Po(t, xo(e.current.step, e.current.log), o("--ink"))],
			setCursor: [(t) => t.cursor.event?.isTrusted && e.current.onLook(Mo(t, e.current))],
			ready: [(t) => {
				t.over.addEventListener("click", () => {
					let n = Mo(t, e.current);
					n !== null && e.current.onStep(n);
				}), t.over.addEventListener("mouseleave", () => e.current.onLook(null));
			}]
		}
	};
}
var ko = Array.from({ length: 16 }, (e, t) => [
	10 ** t,
	2 * 10 ** t,
	5 * 10 ** t
]).flat();
function Ao(e) {
	let [t, n] = [e[0] ?? 0, e[e.length - 1] ?? 0];
	return t < n ? [t, n] : [t - .5, t + .5];
}
function jo(e) {
	let [t, n] = [e[0] ?? 0, e[e.length - 1] ?? 0], r = [0];
	for (let e = 0; e <= Math.ceil(n); e++) r.push(xo(10 ** e, !0));
	let i = r.filter((e) => e >= t && e <= n);
	return i.length > 1 ? i : [.../* @__PURE__ */ new Set([t, n])];
}
function Mo(e, t) {
	let n = e.cursor.left ?? -1;
	if (n < 0) return null;
	let r = e.posToVal(n, "x"), { steps: i } = t.curves, a = i.map((e) => xo(e, t.log)), o = uo(a, r);
	return o === null ? null : i[a.indexOf(o)];
}
function No(e, t, n, r) {
	for (let i of t?.segments ?? []) {
		let [t, a] = [i.first, i.last].map((t) => e.valToPos(xo(t, n), "x", !0));
		e.ctx.fillStyle = r[i.kind], e.ctx.fillRect(t, e.bbox.top, a - t, e.bbox.height);
	}
}
function Po(e, t, n) {
	let r = e.valToPos(t, "x", !0);
	e.ctx.save(), e.ctx.strokeStyle = n, e.ctx.setLineDash([4, 4]), e.ctx.beginPath(), e.ctx.moveTo(r, e.bbox.top), e.ctx.lineTo(r, e.bbox.top + e.bbox.height), e.ctx.stroke(), e.ctx.restore();
}
function Fo(e, t, n) {
	let r = e.steps.indexOf(n);
	return r < 0 ? "" : `at step ${n} ${t.map((e) => `${e.label} ${co(e.values[r])}`).join(", ")}`;
}
function Io({ phases: e }) {
	let t = e.segments.map((e) => `${e.name} from step ${co(e.first)} to ${co(e.last)}`);
	return /* @__PURE__ */ $("p", {
		class: "phases",
		children: [
			/* @__PURE__ */ $("strong", { children: "Phases" }),
			" of ",
			e.measure.replaceAll("_", " "),
			" at ",
			e.probe,
			": ",
			t.join(", "),
			". Ascents are shaded warm, descents cool.",
			" ",
			e.grokked ? `It groks: memorised at ${co(e.memorised)}, generalised at ${co(e.generalised)}.` : ""
		]
	});
}
function Lo({ curves: e }) {
	let t = [
		...e.scalars.map((e) => [e.label, e.values]),
		...e.measures.flatMap((e) => e.probes.map((t) => [`${t.name} ${e.label}`, t.mean])),
		...e.planes.map((e) => [`regions on plane ${e.name}`, e.cells])
	];
	return /* @__PURE__ */ $("details", {
		class: "table",
		children: [/* @__PURE__ */ $("summary", { children: "All numbers as a table" }), /* @__PURE__ */ $("div", {
			class: "scroll",
			tabIndex: 0,
			role: "region",
			"aria-label": "all numbers",
			children: /* @__PURE__ */ $("table", { children: [/* @__PURE__ */ $("thead", { children: /* @__PURE__ */ $("tr", { children: [/* @__PURE__ */ $("th", {
				scope: "col",
				children: "step"
			}), e.steps.map((e) => /* @__PURE__ */ $("th", {
				scope: "col",
				children: e.toLocaleString("en")
			}, e))] }) }), /* @__PURE__ */ $("tbody", { children: t.map(([e, t]) => /* @__PURE__ */ $("tr", { children: [/* @__PURE__ */ $("th", {
				scope: "row",
				children: e
			}), t.map((e, t) => /* @__PURE__ */ $("td", { children: co(e) }, t))] }, e)) })] })
		})]
	});
}
// src/Picker.tsx
var Ro = 200, zo = {
	start: 0,
	count: Ro
};
function Bo({ to: e, run: t, onPlane: n, onClose: r }) {
	let i = U(null), [a, o] = B(null), [s, c] = B(null), [l, u] = B([]), [d, f] = B(0), [p, m] = B("");
	H(() => i.current?.showModal(), []), H(() => {
		Pe(e, "/api/images", {
			run: t,
			start: d,
			count: Ro
		}).then(async (n) => {
			o(n), c(n.sheet ? await e.picture("/api/sheet", {
				run: t,
				start: d,
				count: Ro
			}) : null);
		}, (e) => m(e.message));
	}, [t, d]);
	let h = (e) => u((t) => t.includes(e) ? t.filter((t) => t !== e) : t.length < 3 ? [...t, e] : t);
	return /* @__PURE__ */ $("dialog", {
		ref: i,
		class: "picker",
		"aria-label": "choose three images",
		onClose: r,
		children: [
			/* @__PURE__ */ $("h2", { children: "A plane through three images" }),
			/* @__PURE__ */ $("p", {
				role: "status",
				children: [
					p || (l.length < 3 ? `Choose ${3 - l.length} more.` : "Ready."),
					" ",
					l.length > 0 && `Chosen: ${l.join(", ")}.`
				]
			}),
			/* @__PURE__ */ $("div", {
				class: "sheet",
				children: a && [...Array(a.count).keys()].map((e) => /* @__PURE__ */ $(Ho, {
					images: a,
					sheet: s,
					i: e,
					chosen: l.includes(d + e),
					onClick: () => h(d + e)
				}, d + e))
			}),
			/* @__PURE__ */ $("div", {
				class: "row",
				children: [
					/* @__PURE__ */ $("button", {
						type: "button",
						disabled: d === 0,
						onClick: () => f(Math.max(0, d - Ro)),
						children: "← earlier"
					}),
					/* @__PURE__ */ $("button", {
						type: "button",
						disabled: !a || d + Ro >= a.total,
						onClick: () => f(d + Ro),
						children: "later →"
					}),
					/* @__PURE__ */ $("span", { class: "grow" }),
					/* @__PURE__ */ $("button", {
						type: "button",
						onClick: () => i.current?.close(),
						children: "Cancel"
					}),
					/* @__PURE__ */ $("button", {
						type: "button",
						class: "primary",
						disabled: l.length < 3,
						onClick: () => (n(`through:${l.join(",")}`), i.current?.close()),
						children: "Show the plane"
					})
				]
			})
		]
	});
}
var Vo = 36;
function Ho({ images: e, sheet: t, i: n, chosen: r, onClick: i }) {
	let a = e.labels?.[n], o = t ? {
		backgroundImage: `url("${t}")`,
		backgroundSize: `${Vo * e.columns}px auto`,
		backgroundPosition: `-${Vo * (n % e.columns)}px -${Vo * Math.floor(n / e.columns)}px`
	} : {}, s = `image ${e.start + n}${a === void 0 ? "" : `, class ${a}`}`;
	return /* @__PURE__ */ $("button", {
		type: "button",
		class: "thumb",
		"aria-pressed": r,
		"aria-label": s,
		title: s,
		style: o,
		onClick: i,
		children: t ? "" : a ?? e.start + n
	});
}
// src/downloads.ts
var Uo = (/* @__PURE__ */ e(((e) => {
	var t = Object.defineProperty;
	((e) => t(e, "__esModule", { value: !0 }))(e), ((e, n) => {
		for (var r in n) t(e, r, {
			get: n[r],
			enumerable: !0
		});
	})(e, {
		GIFEncoder: () => A,
		applyPalette: () => S,
		default: () => I,
		nearestColor: () => k,
		nearestColorIndex: () => D,
		nearestColorIndexWithDistance: () => O,
		prequantize: () => x,
		quantize: () => _,
		snapColorsToPalette: () => T
	});
	var n = {
		signature: "GIF",
		version: "89a",
		trailer: 59,
		extensionIntroducer: 33,
		applicationExtensionLabel: 255,
		graphicControlExtensionLabel: 249,
		imageSeparator: 44,
		signatureSize: 3,
		versionSize: 3,
		globalColorTableFlagMask: 128,
		colorResolutionMask: 112,
		sortFlagMask: 8,
		globalColorTableSizeMask: 7,
		applicationIdentifierSize: 8,
		applicationAuthCodeSize: 3,
		disposalMethodMask: 28,
		userInputFlagMask: 2,
		transparentColorFlagMask: 1,
		localColorTableFlagMask: 128,
		interlaceFlagMask: 64,
		idSortFlagMask: 32,
		localColorTableSizeMask: 7
	};
	function r(e = 256) {
		let t = 0, n = new Uint8Array(e);
		return {
			get buffer() {
				return n.buffer;
			},
			reset() {
				t = 0;
			},
			bytesView() {
				return n.subarray(0, t);
			},
			bytes() {
				return n.slice(0, t);
			},
			writeByte(e) {
				r(t + 1), n[t] = e, t++;
			},
			writeBytes(e, i = 0, a = e.length) {
				r(t + a);
				for (let r = 0; r < a; r++) n[t++] = e[r + i];
			},
			writeBytesView(e, i = 0, a = e.byteLength) {
				r(t + a), n.set(e.subarray(i, i + a), t), t += a;
			}
		};
		function r(e) {
			var r = n.length;
			if (r >= e) return;
			e = Math.max(e, r * (r < 1048576 ? 2 : 1.125) >>> 0), r != 0 && (e = Math.max(e, 256));
			let i = n;
			n = new Uint8Array(e), t > 0 && n.set(i.subarray(0, t), 0);
		}
	}
	var i = 12, a = 5003, o = [
		0,
		1,
		3,
		7,
		15,
		31,
		63,
		127,
		255,
		511,
		1023,
		2047,
		4095,
		8191,
		16383,
		32767,
		65535
	];
	function s(e, t, n, s, c = r(512), l = /* @__PURE__ */ new Uint8Array(256), u = new Int32Array(a), d = new Int32Array(a)) {
		let f = u.length, p = Math.max(2, s);
		l.fill(0), d.fill(0), u.fill(-1);
		let m = 0, h = 0, g = p + 1, _ = g, v = !1, y = _, b = (1 << y) - 1, x = 1 << g - 1, S = x + 1, C = x + 2, w = 0, T = n[0], E = 0;
		for (let e = f; e < 65536; e *= 2) ++E;
		E = 8 - E, c.writeByte(p), O(x);
		let D = n.length;
		for (let e = 1; e < D; e++) next_block: {
			let t = n[e], r = (t << i) + T, a = t << E ^ T;
			if (u[a] === r) {
				T = d[a];
				break next_block;
			}
			let o = a === 0 ? 1 : f - a;
			for (; u[a] >= 0;) if (a -= o, a < 0 && (a += f), u[a] === r) {
				T = d[a];
				break next_block;
			}
			O(T), T = t, C < 1 << i ? (d[a] = C++, u[a] = r) : (u.fill(-1), C = x + 2, v = !0, O(x));
		}
		return O(T), O(S), c.writeByte(0), c.bytesView();
		function O(e) {
			for (m &= o[h], h > 0 ? m |= e << h : m = e, h += y; h >= 8;) l[w++] = m & 255, w >= 254 && (c.writeByte(w), c.writeBytesView(l, 0, w), w = 0), m >>= 8, h -= 8;
			if ((C > b || v) && (v ? (y = _, b = (1 << y) - 1, v = !1) : (++y, b = y === i ? 1 << y : (1 << y) - 1)), e == S) {
				for (; h > 0;) l[w++] = m & 255, w >= 254 && (c.writeByte(w), c.writeBytesView(l, 0, w), w = 0), m >>= 8, h -= 8;
				w > 0 && (c.writeByte(w), c.writeBytesView(l, 0, w), w = 0);
			}
		}
	}
	var c = s;
	function l(e, t, n) {
		return e << 8 & 63488 | t << 2 & 992 | n >> 3;
	}
	function u(e, t, n, r) {
		return e >> 4 | t & 240 | (n & 240) << 4 | (r & 240) << 8;
	}
	function d(e, t, n) {
		return e >> 4 << 8 | t & 240 | n >> 4;
	}
	function f(e, t, n) {
		return e < t ? t : e > n ? n : e;
	}
	function p(e) {
		return e * e;
	}
	function m(e, t, n) {
		var r = 0, i = 1e100;
		let a = e[t], o = a.cnt, s = a.ac, c = a.rc, l = a.gc, u = a.bc;
		for (var d = a.fw; d != 0; d = e[d].fw) {
			let t = e[d], a = t.cnt, m = o * a / (o + a);
			if (!(m >= i)) {
				var f = 0;
				n && (f += m * p(t.ac - s), f >= i) || (f += m * p(t.rc - c), f >= i || (f += m * p(t.gc - l), f >= i || (f += m * p(t.bc - u), f >= i || (i = f, r = d))));
			}
		}
		a.err = i, a.nn = r;
	}
	function h() {
		return {
			ac: 0,
			rc: 0,
			gc: 0,
			bc: 0,
			cnt: 0,
			nn: 0,
			fw: 0,
			bk: 0,
			tm: 0,
			mtm: 0,
			err: 0
		};
	}
	function g(e, t) {
		let n = Array(t === "rgb444" ? 4096 : 65536), r = e.length;
		if (t === "rgba4444") for (let t = 0; t < r; ++t) {
			let r = e[t], i = r >> 24 & 255, a = r >> 16 & 255, o = r >> 8 & 255, s = r & 255, c = u(s, o, a, i), l = c in n ? n[c] : n[c] = h();
			l.rc += s, l.gc += o, l.bc += a, l.ac += i, l.cnt++;
		}
		else if (t === "rgb444") for (let t = 0; t < r; ++t) {
			let r = e[t], i = r >> 16 & 255, a = r >> 8 & 255, o = r & 255, s = d(o, a, i), c = s in n ? n[s] : n[s] = h();
			c.rc += o, c.gc += a, c.bc += i, c.cnt++;
		}
		else for (let t = 0; t < r; ++t) {
			let r = e[t], i = r >> 16 & 255, a = r >> 8 & 255, o = r & 255, s = l(o, a, i), c = s in n ? n[s] : n[s] = h();
			c.rc += o, c.gc += a, c.bc += i, c.cnt++;
		}
		return n;
	}
	function _(e, t, n = {}) {
		let { format: r = "rgb565", clearAlpha: i = !0, clearAlphaColor: a = 0, clearAlphaThreshold: o = 0, oneBitAlpha: s = !1 } = n;
		if (!e || !e.buffer || !(e instanceof Uint8Array) && !(e instanceof Uint8ClampedArray)) throw Error("quantize() expected RGBA Uint8Array data");
		let c = new Uint32Array(e.buffer), l = n.useSqrt !== !1, u = r === "rgba4444", d = g(c, r), h = d.length, _ = h - 1, y = new Uint32Array(h + 1);
		for (var b = 0, x = 0; x < h; ++x) {
			let e = d[x];
			if (e != null) {
				var S = 1 / e.cnt;
				u && (e.ac *= S), e.rc *= S, e.gc *= S, e.bc *= S, d[b++] = e;
			}
		}
		p(t) / b < .022 && (l = !1);
		for (var x = 0; x < b - 1; ++x) d[x].fw = x + 1, d[x + 1].bk = x, l && (d[x].cnt = Math.sqrt(d[x].cnt));
		l && (d[x].cnt = Math.sqrt(d[x].cnt));
		var C, w, T;
		for (x = 0; x < b; ++x) {
			m(d, x, !1);
			var E = d[x].err;
			for (w = ++y[0]; w > 1 && (T = w >> 1, !(d[C = y[T]].err <= E)); w = T) y[w] = C;
			y[w] = x;
		}
		var D = b - t;
		for (x = 0; x < D;) {
			for (var O;;) {
				var k = y[1];
				if (O = d[k], O.tm >= O.mtm && d[O.nn].mtm <= O.tm) break;
				O.mtm == _ ? k = y[1] = y[y[0]--] : (m(d, k, !1), O.tm = x);
				var E = d[k].err;
				for (w = 1; (T = w + w) <= y[0] && (T < y[0] && d[y[T]].err > d[y[T + 1]].err && T++, !(E <= d[C = y[T]].err)); w = T) y[w] = C;
				y[w] = k;
			}
			var A = d[O.nn], j = O.cnt, M = A.cnt, S = 1 / (j + M);
			u && (O.ac = S * (j * O.ac + M * A.ac)), O.rc = S * (j * O.rc + M * A.rc), O.gc = S * (j * O.gc + M * A.gc), O.bc = S * (j * O.bc + M * A.bc), O.cnt += A.cnt, O.mtm = ++x, d[A.bk].fw = A.fw, d[A.fw].bk = A.bk, A.mtm = _;
		}
		let ee = [];
		var N = 0;
		for (x = 0;; ++N) {
			let e = f(Math.round(d[x].rc), 0, 255), t = f(Math.round(d[x].gc), 0, 255), n = f(Math.round(d[x].bc), 0, 255), r = 255;
			u && (r = f(Math.round(d[x].ac), 0, 255), s && (r = r <= (typeof s == "number" ? s : 127) ? 0 : 255), i && r <= o && (e = t = n = a, r = 0));
			let c = u ? [
				e,
				t,
				n,
				r
			] : [
				e,
				t,
				n
			];
			if (v(ee, c) || ee.push(c), (x = d[x].fw) == 0) break;
		}
		return ee;
	}
	function v(e, t) {
		for (let n = 0; n < e.length; n++) {
			let r = e[n], i = r[0] === t[0] && r[1] === t[1] && r[2] === t[2], a = r.length >= 4 && t.length >= 4 ? r[3] === t[3] : !0;
			if (i && a) return !0;
		}
		return !1;
	}
	function y(e, t) {
		for (var n = 0, r = 0; r < e.length; r++) {
			let i = e[r] - t[r];
			n += i * i;
		}
		return n;
	}
	function b(e, t) {
		return t > 1 ? Math.round(e / t) * t : e;
	}
	function x(e, { roundRGB: t = 5, roundAlpha: n = 10, oneBitAlpha: r = null } = {}) {
		let i = new Uint32Array(e.buffer);
		for (let e = 0; e < i.length; e++) {
			let a = i[e], o = a >> 24 & 255, s = a >> 16 & 255, c = a >> 8 & 255, l = a & 255;
			o = b(o, n), r && (o = o <= (typeof r == "number" ? r : 127) ? 0 : 255), l = b(l, t), c = b(c, t), s = b(s, t), i[e] = o << 24 | s << 16 | c << 8 | l;
		}
	}
	function S(e, t, n = "rgb565") {
		if (!e || !e.buffer || !(e instanceof Uint8Array) && !(e instanceof Uint8ClampedArray)) throw Error("quantize() expected RGBA Uint8Array data");
		if (t.length > 256) throw Error("applyPalette() only works with 256 colors or less");
		let r = new Uint32Array(e.buffer), i = r.length, a = n === "rgb444" ? 4096 : 65536, o = new Uint8Array(i), s = Array(a);
		if (n === "rgba4444") for (let e = 0; e < i; e++) {
			let n = r[e], i = n >> 24 & 255, a = n >> 16 & 255, c = n >> 8 & 255, l = n & 255, d = u(l, c, a, i), f = d in s ? s[d] : s[d] = C(l, c, a, i, t);
			o[e] = f;
		}
		else {
			let e = n === "rgb444" ? d : l;
			for (let n = 0; n < i; n++) {
				let i = r[n], a = i >> 16 & 255, c = i >> 8 & 255, l = i & 255, u = e(l, c, a), d = u in s ? s[u] : s[u] = w(l, c, a, t);
				o[n] = d;
			}
		}
		return o;
	}
	function C(e, t, n, r, i) {
		let a = 0, o = 1e100;
		for (let s = 0; s < i.length; s++) {
			let c = i[s], l = c[3], u = E(l - r);
			if (u > o) continue;
			let d = c[0];
			if (u += E(d - e), u > o) continue;
			let f = c[1];
			if (u += E(f - t), u > o) continue;
			let p = c[2];
			u += E(p - n), u > o || (o = u, a = s);
		}
		return a;
	}
	function w(e, t, n, r) {
		let i = 0, a = 1e100;
		for (let o = 0; o < r.length; o++) {
			let s = r[o], c = s[0], l = E(c - e);
			if (l > a) continue;
			let u = s[1];
			if (l += E(u - t), l > a) continue;
			let d = s[2];
			l += E(d - n), l > a || (a = l, i = o);
		}
		return i;
	}
	function T(e, t, n = 5) {
		if (!e.length || !t.length) return;
		let r = e.map((e) => e.slice(0, 3)), i = n * n, a = e[0].length;
		for (let n = 0; n < t.length; n++) {
			let o = t[n];
			o = o.length < a ? [
				o[0],
				o[1],
				o[2],
				255
			] : o.length > a ? o.slice(0, 3) : o.slice();
			let s = O(r, o.slice(0, 3), y), c = s[0], l = s[1];
			l > 0 && l <= i && (e[c] = o);
		}
	}
	function E(e) {
		return e * e;
	}
	function D(e, t, n = y) {
		let r = Infinity, i = -1;
		for (let a = 0; a < e.length; a++) {
			let o = e[a], s = n(t, o);
			s < r && (r = s, i = a);
		}
		return i;
	}
	function O(e, t, n = y) {
		let r = Infinity, i = -1;
		for (let a = 0; a < e.length; a++) {
			let o = e[a], s = n(t, o);
			s < r && (r = s, i = a);
		}
		return [i, r];
	}
	function k(e, t, n = y) {
		return e[D(e, t, n)];
	}
	function A(e = {}) {
		let { initialCapacity: t = 4096, auto: i = !0 } = e, a = r(t), o = 5003, s = /* @__PURE__ */ new Uint8Array(256), c = new Int32Array(o), l = new Int32Array(o), u = !1;
		return {
			reset() {
				a.reset(), u = !1;
			},
			finish() {
				a.writeByte(n.trailer);
			},
			bytes() {
				return a.bytes();
			},
			bytesView() {
				return a.bytesView();
			},
			get buffer() {
				return a.buffer;
			},
			get stream() {
				return a;
			},
			writeHeader: d,
			writeFrame(e, t, n, r = {}) {
				let { transparent: o = !1, transparentIndex: f = 0, delay: p = 0, palette: m = null, repeat: h = 0, colorDepth: g = 8, dispose: _ = -1 } = r, v = !1;
				if (i ? u ||= (v = !0, d(), !0) : v = !!r.first, t = Math.max(0, Math.floor(t)), n = Math.max(0, Math.floor(n)), v) {
					if (!m) throw Error("First frame must include a { palette } option");
					M(a, t, n, m, g), N(a, m), h >= 0 && ee(a, h);
				}
				let y = Math.round(p / 10);
				j(a, _, y, o, f);
				let b = !!m && !v;
				te(a, t, n, b ? m : null), b && N(a, m), ne(a, e, t, n, g, s, c, l);
			}
		};
		function d() {
			re(a, "GIF89a");
		}
	}
	function j(e, t, n, r, i) {
		e.writeByte(33), e.writeByte(249), e.writeByte(4), i < 0 && (i = 0, r = !1);
		var a, o;
		r ? (a = 1, o = 2) : (a = 0, o = 0), t >= 0 && (o = t & 7), o <<= 2, e.writeByte(o | 0 | a), P(e, n), e.writeByte(i || 0), e.writeByte(0);
	}
	function M(e, t, n, r, i = 8) {
		let a = F(r.length) - 1, o = i - 1 << 4 | 128 | a;
		P(e, t), P(e, n), e.writeBytes([
			o,
			0,
			0
		]);
	}
	function ee(e, t) {
		e.writeByte(33), e.writeByte(255), e.writeByte(11), re(e, "NETSCAPE2.0"), e.writeByte(3), e.writeByte(1), P(e, t), e.writeByte(0);
	}
	function N(e, t) {
		let n = 1 << F(t.length);
		for (let r = 0; r < n; r++) {
			let n = [
				0,
				0,
				0
			];
			r < t.length && (n = t[r]), e.writeByte(n[0]), e.writeByte(n[1]), e.writeByte(n[2]);
		}
	}
	function te(e, t, n, r) {
		if (e.writeByte(44), P(e, 0), P(e, 0), P(e, t), P(e, n), r) {
			let t = F(r.length) - 1;
			e.writeByte(128 | t);
		} else e.writeByte(0);
	}
	function ne(e, t, n, r, i = 8, a, o, s) {
		c(n, r, t, i, e, a, o, s);
	}
	function P(e, t) {
		e.writeByte(t & 255), e.writeByte(t >> 8 & 255);
	}
	function re(e, t) {
		for (var n = 0; n < t.length; n++) e.writeByte(t.charCodeAt(n));
	}
	function F(e) {
		return Math.max(Math.ceil(Math.log2(e)), 1);
	}
	var I = A;
})))();
function Wo(e, t, n = "text/plain") {
	let r = document.createElement("a");
	r.href = URL.createObjectURL(typeof e == "string" ? new Blob([e], { type: n }) : e), r.download = t, r.click(), setTimeout(() => URL.revokeObjectURL(r.href), 1e4);
}
function Go(e, t) {
	e.toBlob((e) => e && Wo(e, t));
}
function Ko(e) {
	let { x: t, y: n, scale: r } = e.window, i = ["cell,x,y,area,class,gradient_norm,pattern,layer,corners"];
	for (let a = 0; a < e.cells; a++) {
		let o = Yo(e, a), [s, c] = [0, 1].map((e) => o.reduce((t, n) => t + n[e], 0) / o.length), l = [
			t + r * s,
			n + r * c,
			e.area[a] * r * r,
			e.class?.[a] ?? "",
			e.gradient?.[a] ?? ""
		];
		i.push([
			a,
			...l,
			e.pattern[a].toString(16).padStart(8, "0"),
			e.layer[a],
			o.length
		].join(","));
	}
	return `${i.join("\n")}\n`;
}
function qo(e, t, n, r = 800) {
	let i = Math.round(r * t.hy / t.hx), { scale: a } = e.window, o = (n) => (.5 * r * (1 + (n * a + e.window.x - t.x) / t.hx)).toFixed(2), s = (n) => (.5 * i * (1 - (n * a + e.window.y - t.y) / t.hy)).toFixed(2), { rgba: c } = no(e, n.colouring, n.dark), l = /* @__PURE__ */ new Map(), u = n.colouring === "class" ? e.piece_cell?.length ?? 0 : 0;
	for (let t = 0; t < e.cells + u; t++) {
		let n = Qa([
			c[4 * t],
			c[4 * t + 1],
			c[4 * t + 2]
		]), r = `M${(t < e.cells ? Yo(e, t) : Jo(e, t - e.cells)).map(([e, t]) => `${o(e)} ${s(t)}`).join("L")}Z`, i = t < e.cells ? n : `${n} `;
		l.set(i, [...l.get(i) ?? [], r]);
	}
	let d = /* @__PURE__ */ new Map();
	e.edge_layer.forEach((t, r) => {
		if (t === 0 || n.hidden.has(t)) return;
		let [i, a] = [2 * e.edge_vertices[2 * r], 2 * e.edge_vertices[2 * r + 1]], c = (t) => `${o(e.vertices[t])} ${s(e.vertices[t + 1])}`;
		d.set(t, [...d.get(t) ?? [], `M${c(i)}L${c(a)}`]);
	});
	let f = [...Array((e.decision?.length ?? 0) / 4).keys()].map((t) => {
		let [n, r, i, a] = e.decision.subarray(4 * t, 4 * t + 4);
		return `M${o(n)} ${s(r)}L${o(i)} ${s(a)}`;
	});
	return [
		`<svg xmlns="http://www.w3.org/2000/svg" width="${r}" height="${i}" viewBox="0 0 ${r} ${i}">`,
		...[...l].map(([e, t]) => `<path fill="${e.trim()}" d="${t.join("")}"/>`),
		...[...d].map(([t, r]) => `<path fill="none" stroke="${Qa($a(t, e.layers, n.dark))}" stroke-width="0.7" d="${r.join("")}"><title>layer ${t}</title></path>`),
		n.decision && f.length ? `<path fill="none" stroke="${Ua}" stroke-width="2" d="${f.join("")}"><title>decision boundary</title></path>` : "",
		"</svg>\n"
	].join("\n");
}
function Jo(e, t) {
	let n = e.piece_places.subarray(2 * e.piece_offsets[t], 2 * e.piece_offsets[t + 1]);
	return [...Array(n.length / 2).keys()].map((e) => [n[2 * e], n[2 * e + 1]]);
}
function Yo(e, t) {
	return [...e.corners.subarray(e.offsets[t], e.offsets[t + 1])].map((t) => [e.vertices[2 * t], e.vertices[2 * t + 1]]);
}
async function Xo(e, t, n, r) {
	let i = (0, Uo.GIFEncoder)(), a = document.createElement("canvas");
	a.width = 480, a.height = Math.round(480 * e.height / e.width);
	let o = a.getContext("2d", { willReadFrequently: !0 });
	for (let [s, c] of t.entries()) {
		await n(c), o.drawImage(e, 0, 0, a.width, a.height), o.font = "14px sans-serif", o.fillStyle = "#ffffffcc", o.fillRect(4, a.height - 24, 16 + o.measureText(`step ${c}`).width, 20), o.fillStyle = "#000", o.fillText(`step ${c}`, 12, a.height - 9);
		let { data: l } = o.getImageData(0, 0, a.width, a.height), u = (0, Uo.quantize)(l, 256);
		i.writeFrame((0, Uo.applyPalette)(l, u), a.width, a.height, {
			palette: u,
			delay: s === t.length - 1 ? 2e3 : 250
		}), r(s + 1);
	}
	return i.finish(), new Blob([i.bytes()], { type: "image/gif" });
}
// src/Legend.tsx
function Zo({ content: e, scale: t, colouring: n, hidden: r, decision: i, dark: a, onHidden: o, onDecision: s }) {
	let c = a ? [
		22,
		24,
		29
	] : [
		255,
		255,
		255
	], l = e.kind === "cells" ? Qo(e.edge_layer) : [], u = e.kind === "cells" && n === "class" && e.class ? Qo(e.class, -1) : [], d = (e) => o(r.includes(e) ? r.filter((t) => t !== e) : [...r, e]);
	return /* @__PURE__ */ $("div", {
		class: "legend",
		children: [
			l.length > 0 && /* @__PURE__ */ $("fieldset", { children: [
				/* @__PURE__ */ $("legend", { children: "Boundaries" }),
				l.map((t) => /* @__PURE__ */ $("label", { children: [
					/* @__PURE__ */ $("input", {
						type: "checkbox",
						checked: !r.includes(t),
						onChange: () => d(t)
					}),
					/* @__PURE__ */ $($o, { colour: Qa($a(t, e.layers, a)) }),
					" layer ",
					t
				] }, t)),
				e.kind === "cells" && !!e.decision?.length && /* @__PURE__ */ $("label", { children: [
					/* @__PURE__ */ $("input", {
						type: "checkbox",
						checked: i,
						onChange: () => s(!i)
					}),
					/* @__PURE__ */ $($o, {
						colour: "#d62728",
						width: 3
					}),
					" decision"
				] })
			] }),
			u.length > 0 && /* @__PURE__ */ $("ul", {
				"aria-label": "classes",
				children: u.map((t) => /* @__PURE__ */ $("li", { children: [
					/* @__PURE__ */ $("span", {
						class: "swatch",
						style: { background: Qa(Xa(qa(t), [...c], .45)) }
					}),
					" ",
					e.classes[t] ?? t
				] }, t))
			}),
			t && /* @__PURE__ */ $(es, {
				scale: t,
				ground: [...c]
			})
		]
	});
}
function Qo(e, t = 0) {
	let n = /* @__PURE__ */ new Set();
	for (let r = 0; r < e.length; r++) e[r] > t && n.add(e[r]);
	return [...n].sort((e, t) => e - t);
}
function $o({ colour: e, width: t = 2 }) {
	return /* @__PURE__ */ $("svg", {
		width: "20",
		height: "8",
		"aria-hidden": "true",
		children: /* @__PURE__ */ $("line", {
			x1: "0",
			y1: "4",
			x2: "20",
			y2: "4",
			stroke: e,
			"stroke-width": t
		})
	});
}
function es({ scale: e, ground: t }) {
	let n = [
		0,
		.25,
		.5,
		.75,
		1
	].map((e) => Qa(Xa(Ya(e), t, .45)));
	return /* @__PURE__ */ $("div", {
		class: "bar",
		children: [/* @__PURE__ */ $("span", { children: [e.label, e.log ? ", log scale" : ""] }), /* @__PURE__ */ $("span", {
			class: "ends",
			children: [
				co(e.low),
				" ",
				/* @__PURE__ */ $("span", {
					class: "gradient",
					style: { background: `linear-gradient(to right, ${n.join(", ")})` }
				}),
				" ",
				co(e.high)
			]
		})]
	});
}
// src/locating.ts
var ts = 64, ns = class {
	cells;
	fields;
	starts;
	low;
	size;
	constructor(e) {
		this.cells = e;
		let { hx: t, hy: n, scale: r } = e.window;
		this.low = [-t / r, -n / r], this.size = [2 * t / r / ts, 2 * n / r / ts];
		let i = new Uint8Array(4 * e.cells), a = /* @__PURE__ */ new Uint32Array(4097);
		for (let t = 0; t < e.cells; t++) {
			let e = this.box(t);
			i.set(e, 4 * t), this.each(e, (e) => a[e + 1]++);
		}
		for (let e = 0; e < 4096; e++) a[e + 1] += a[e];
		this.starts = a.slice(), this.fields = new Uint32Array(a[4096]);
		let o = a.slice();
		for (let t = 0; t < e.cells; t++) this.each(i.subarray(4 * t, 4 * t + 4), (e) => this.fields[o[e]++] = t);
	}
	at(e, t) {
		let n = Math.floor((e - this.low[0]) / this.size[0]), r = Math.floor((t - this.low[1]) / this.size[1]);
		if (n < 0 || r < 0 || n >= ts || r >= ts) return -1;
		let i = r * ts + n;
		for (let n = this.starts[i]; n < this.starts[i + 1]; n++) if (this.holds(this.fields[n], e, t)) return this.fields[n];
		return -1;
	}
	holds(e, t, n) {
		let { offsets: r, corners: i, vertices: a } = this.cells, [o, s] = [r[e], r[e + 1]];
		for (let e = o; e < s; e++) {
			let r = 2 * i[e], c = 2 * i[e + 1 < s ? e + 1 : o], [l, u] = [a[r], a[r + 1]];
			if ((a[c] - l) * (n - u) - (a[c + 1] - u) * (t - l) < 0) return !1;
		}
		return !0;
	}
	box(e) {
		let { offsets: t, corners: n, vertices: r } = this.cells, [i, a, o, s] = [
			Infinity,
			Infinity,
			-Infinity,
			-Infinity
		];
		for (let c = t[e]; c < t[e + 1]; c++) {
			let [e, t] = [r[2 * n[c]], r[2 * n[c] + 1]];
			[i, a, o, s] = [
				Math.min(i, e),
				Math.min(a, t),
				Math.max(o, e),
				Math.max(s, t)
			];
		}
		let c = (e, t) => Math.min(Math.max(Math.floor((e - this.low[t]) / this.size[t]), 0), 63);
		return [
			c(i, 0),
			c(a, 1),
			c(o, 0),
			c(s, 1)
		];
	}
	each([e, t, n, r], i) {
		for (let a = t; a <= r; a++) for (let t = e; t <= n; t++) i(a * ts + t);
	}
};
function rs(e, t, n, r) {
	for (let i = 0; i < (e.piece_cell?.length ?? 0); i++) {
		if (e.piece_cell[i] !== t) continue;
		let a = e.piece_places.subarray(2 * e.piece_offsets[i], 2 * e.piece_offsets[i + 1]), o = a.length / 2, s = (e) => {
			let [t, i, s] = [
				a[2 * e],
				a[2 * e + 1],
				2 * ((e + 1) % o)
			];
			return (a[s] - t) * (r - i) - (a[s + 1] - i) * (n - t) >= 0;
		};
		if ([...Array(o).keys()].every(s)) return e.piece_class[i];
	}
	return e.class[t];
}
function is(e) {
	let { offsets: t, corners: n, vertices: r, window: i } = e, a = new Float64Array(2 * e.cells);
	for (let o = 0; o < e.cells; o++) {
		let e = i.scale / (t[o + 1] - t[o]);
		[a[2 * o], a[2 * o + 1]] = [i.x, i.y];
		for (let i = t[o]; i < t[o + 1]; i++) a[2 * o] += e * r[2 * n[i]], a[2 * o + 1] += e * r[2 * n[i] + 1];
	}
	return a;
}
var as = .92;
function os(e, t, n) {
	let r = /* @__PURE__ */ new Map();
	return e.class?.forEach((i, a) => {
		Math.max(Math.abs(t[2 * a] - n.x) / n.hx, Math.abs(t[2 * a + 1] - n.y) / n.hy) < as && e.area[a] > (e.area[r.get(i) ?? -1] ?? 0) && r.set(i, a);
	}), [...r].map(([n, r]) => ({
		name: e.classes[n] ?? String(n),
		x: t[2 * r],
		y: t[2 * r + 1]
	}));
}
function ss(e) {
	let t = new Uint32Array(e.cells + 1), n = (t) => e.edge_site[t] >= 0, r = (t) => {
		for (let r = 0; r < e.edge_site.length; r++) for (let i of [0, 1]) {
			let a = e.edge_cells[2 * r + i];
			a >= 0 && n(r) && t(a, r);
		}
	};
	r((e) => t[e + 1]++);
	for (let n = 0; n < e.cells; n++) t[n + 1] += t[n];
	let [i, a] = [new Uint32Array(t[e.cells]), t.slice()];
	return r((e, t) => i[a[e]++] = t), {
		starts: t,
		edges: i
	};
}
function cs(e, t, n, r, i) {
	let a = null;
	for (let o = t.starts[n]; o < t.starts[n + 1]; o++) {
		let n = t.edges[o], [s, c] = [2 * e.edge_vertices[2 * n], 2 * e.edge_vertices[2 * n + 1]], l = ls(r, i, e.vertices[s], e.vertices[s + 1], e.vertices[c], e.vertices[c + 1]);
		(!a || l < a.distance) && (a = {
			edge: n,
			distance: l
		});
	}
	return a;
}
function ls(e, t, n, r, i, a) {
	let [o, s] = [i - n, a - r], c = o * o + s * s, l = c ? Math.min(Math.max(((e - n) * o + (t - r) * s) / c, 0), 1) : 0;
	return Math.hypot(e - n - l * o, t - r - l * s);
}
function us(e, t) {
	let n = [];
	for (let r of [...t].reverse()) n.unshift(e % r), e = Math.floor(e / r);
	return n.length === 1 ? String(n[0]) : `(${n.join(", ")})`;
}
// src/Marks.tsx
var ds = 2e3;
function fs({ plane: e, window: t, size: n, points: r, picture: i, labels: a }) {
	let o = (e, r) => [n[0] / 2 * (1 + (e - t.x) / t.hx), n[1] / 2 * (1 - (r - t.y) / t.hy)], s = ([e, t]) => e > -20 && t > -20 && e < n[0] + 20 && t < n[1] + 20, c = r ? Math.max(...r.distance, 1e-12) : 1, l = r ? [...r.distance.keys()].filter((e) => s(o(r.place[2 * e], r.place[2 * e + 1]))).slice(0, ds) : [];
	return /* @__PURE__ */ $("svg", {
		class: "marks",
		width: n[0],
		height: n[1],
		"aria-hidden": "true",
		children: [
			a.map(({ name: e, x: t, y: n }) => {
				let r = o(t, n);
				return s(r) && /* @__PURE__ */ $("text", {
					class: "class",
					x: r[0],
					y: r[1],
					children: e
				}, e);
			}),
			l.map((e) => {
				let [t, n] = o(r.place[2 * e], r.place[2 * e + 1]), i = 1 - r.distance[e] / c;
				return /* @__PURE__ */ $("circle", {
					cx: t,
					cy: n,
					r: 1.5 + 3 * i,
					class: "image",
					opacity: .25 + .75 * i,
					children: /* @__PURE__ */ $("title", { children: `image ${e}, class ${r.class[e]}, ${co(r.distance[e])} from the plane` })
				}, e);
			}),
			e.anchors.map((e, t) => {
				let r = o(...e.place);
				return s(r) && /* @__PURE__ */ $(ps, {
					anchor: e,
					place: r,
					picture: i,
					right: r[0] < n[0] - 50
				}, t);
			})
		]
	});
}
function ps({ anchor: e, place: [t, n], right: r, picture: i }) {
	let [a, o] = B(null);
	H(() => {
		let t = !0;
		return e.index !== null && i && i(e.index).then((e) => t && o(e)), () => void (t = !1);
	}, [e.index, i !== null]);
	let s = r ? t + 8 : t - 42;
	return /* @__PURE__ */ $("g", {
		class: "anchor",
		children: [
			/* @__PURE__ */ $("circle", {
				cx: t,
				cy: n,
				r: 4.5
			}),
			a && /* @__PURE__ */ $("image", {
				href: a,
				x: s,
				y: n - 17,
				width: 34,
				height: 34,
				preserveAspectRatio: "xMidYMid"
			}),
			a && /* @__PURE__ */ $("rect", {
				x: s,
				y: n - 17,
				width: 34,
				height: 34
			}),
			e.label !== null && !a && /* @__PURE__ */ $("text", {
				x: t + 8,
				y: n + 4,
				children: e.label
			})
		]
	});
}
// src/scene.ts
var ms = 2048, hs = `#version 300 es
precision highp float;
precision highp sampler2D;
layout(location = 0) in vec2 place;
layout(location = 1) in uint cell;
uniform vec4 map; // factor x, y and shift x, y
uniform sampler2D colours;
flat out vec4 colour;
void main() {
  colour = texelFetch(colours, ivec2(int(cell) % ${ms}, int(cell) / ${ms}), 0);
  gl_Position = vec4(place * map.xy + map.zw, 0.0, 1.0);
}`, gs = `#version 300 es
precision highp float;
precision highp sampler2D;
uniform sampler2D ends; // of an edge each
uniform vec4 map;
uniform vec2 pixel; // half the canvas in pixels
uniform float width;
out float across;
void main() {
  int edge = gl_VertexID / 6, corner = gl_VertexID % 6;
  bool end = corner == 2 || corner == 3 || corner == 5, left = corner == 1 || corner >= 4;
  vec4 both = texelFetch(ends, ivec2(edge % ${ms}, edge / ${ms}), 0);
  vec2 a = both.xy * map.xy + map.zw, b = both.zw * map.xy + map.zw;
  vec2 along = (b - a) * pixel;
  float size = length(along);
  vec2 normal = size > 0.0 ? vec2(-along.y, along.x) / size : vec2(0.0, 1.0);
  across = (0.5 * width + 0.5) * (left ? 1.0 : -1.0);
  gl_Position = vec4((end ? b : a) + normal * across / pixel, 0.0, 1.0);
}`, _s = "#version 300 es\nprecision highp float;\nflat in vec4 colour;\nout vec4 shown;\nvoid main() { shown = colour; }", vs = "#version 300 es\nprecision highp float;\nuniform vec3 colour;\nuniform float width;\nin float across;\nout vec4 shown;\nvoid main() {\n  float cover = clamp(0.5 * width + 0.5 - abs(across), 0.0, 1.0);\n  shown = vec4(colour * cover, cover);\n}", ys = "#version 300 es\nprecision highp float;\nlayout(location = 0) in vec2 place;\nuniform vec4 map;\nuniform vec2 size;\nout vec2 at;\nvoid main() { at = 0.5 + 0.5 * place / size; gl_Position = vec4(place * map.xy + map.zw, 0.0, 1.0); }", bs = "#version 300 es\nprecision highp float;\nuniform sampler2D colours;\nin vec2 at;\nout vec4 shown;\nvoid main() { shown = texture(colours, at); }", xs = class {
	canvas;
	gl;
	fill;
	line;
	picture;
	loaded = null;
	scale = null;
	constructor(e) {
		this.canvas = e;
		let t = e.getContext("webgl2", {
			antialias: !1,
			preserveDrawingBuffer: !0,
			premultipliedAlpha: !0
		});
		if (!t) throw Error("this browser has no WebGL 2, which the explorer draws with");
		this.gl = t, this.fill = Es(t, hs, _s), this.line = Es(t, gs, vs), this.picture = Es(t, ys, bs);
	}
	load(e, t) {
		this.unload(), this.loaded = e.kind === "cells" ? this.loadedCells(e) : this.loadedRaster(e), this.paint(t);
	}
	paint(e) {
		if (!this.loaded) return;
		let { content: t, colours: n } = this.loaded, r = t.kind === "cells" ? no(t, e.colouring, e.dark) : oo(t, e.dark);
		this.scale = r.scale;
		let { gl: i } = this;
		i.bindTexture(i.TEXTURE_2D, n);
		let [a, o] = t.kind === "cells" ? [ms, Math.max(1, Math.ceil(r.rgba.length / 4 / ms))] : [t.size[1], t.size[0]], s = new Uint8Array(4 * a * o);
		s.set(r.rgba), i.texImage2D(i.TEXTURE_2D, 0, i.RGBA, a, o, 0, i.RGBA, i.UNSIGNED_BYTE, s);
	}
	draw(e, t) {
		let { gl: n, canvas: r, loaded: i } = this;
		n.viewport(0, 0, r.width, r.height);
		let [a, o, s] = t.dark ? [
			.09,
			.095,
			.115
		] : [
			1,
			1,
			1
		];
		if (n.clearColor(a, o, s, 1), n.clear(n.COLOR_BUFFER_BIT), !i) return;
		let { x: c, y: l, scale: u } = i.content.window, d = [
			u / e.hx,
			u / e.hy,
			(c - e.x) / e.hx,
			(l - e.y) / e.hy
		], f = (e) => {
			n.useProgram(e), n.uniform4f(n.getUniformLocation(e, "map"), ...d);
		};
		if (n.bindTexture(n.TEXTURE_2D, i.colours), n.bindVertexArray(i.fills), i.content.kind === "raster") {
			f(this.picture);
			let { hx: e, hy: t } = i.content.window;
			n.uniform2f(n.getUniformLocation(this.picture, "size"), e / u, t / u), n.drawArrays(n.TRIANGLE_STRIP, 0, 4);
		} else {
			f(this.fill), n.drawElements(n.TRIANGLES, t.colouring === "class" ? i.pieces : i.corners, n.UNSIGNED_INT, 0), n.enable(n.BLEND), n.blendFunc(n.ONE, n.ONE_MINUS_SRC_ALPHA), f(this.line), n.bindVertexArray(null), n.bindTexture(n.TEXTURE_2D, i.ends), n.uniform2f(n.getUniformLocation(this.line, "pixel"), r.width / 2, r.height / 2);
			for (let { layer: e, first: r, count: a } of i.strokes) {
				if (e === "decision" ? !t.decision : t.hidden.has(e)) continue;
				let [o, s] = ws(e, i.content.layers, t.dark);
				n.uniform3f(n.getUniformLocation(this.line, "colour"), o[0] / 255, o[1] / 255, o[2] / 255), n.uniform1f(n.getUniformLocation(this.line, "width"), s * (devicePixelRatio || 1)), n.drawArrays(n.TRIANGLES, 6 * r, 6 * a);
			}
			n.disable(n.BLEND);
		}
	}
	loadedCells(e) {
		let { gl: t } = this, { places: n, owners: r, triangles: i, ofCells: a } = Ss(e), o = [], s = (e, n) => {
			let r = t.createBuffer();
			o.push(r), t.bindBuffer(e, r), t.bufferData(e, n, t.STATIC_DRAW);
		}, c = t.createVertexArray();
		t.bindVertexArray(c), s(t.ARRAY_BUFFER, n), t.enableVertexAttribArray(0), t.vertexAttribPointer(0, 2, t.FLOAT, !1, 0, 0), s(t.ARRAY_BUFFER, r), t.enableVertexAttribArray(1), t.vertexAttribIPointer(1, 1, t.UNSIGNED_INT, 0, 0), s(t.ELEMENT_ARRAY_BUFFER, i), t.bindVertexArray(null);
		let { places: l, strokes: u } = Cs(e), d = Ts(t, t.NEAREST);
		return t.texImage2D(t.TEXTURE_2D, 0, t.RGBA32F, ms, l.length / 4 / ms, 0, t.RGBA, t.FLOAT, l), {
			content: e,
			fills: c,
			corners: a,
			pieces: i.length,
			strokes: u,
			ends: d,
			colours: Ts(t, t.NEAREST),
			buffers: o
		};
	}
	loadedRaster(e) {
		let { gl: t } = this, { hx: n, hy: r, scale: i } = e.window, [a, o] = [n / i, r / i], s = t.createVertexArray();
		t.bindVertexArray(s);
		let c = t.createBuffer();
		return t.bindBuffer(t.ARRAY_BUFFER, c), t.bufferData(t.ARRAY_BUFFER, new Float32Array([
			-a,
			-o,
			a,
			-o,
			-a,
			o,
			a,
			o
		]), t.STATIC_DRAW), t.enableVertexAttribArray(0), t.vertexAttribPointer(0, 2, t.FLOAT, !1, 0, 0), t.bindVertexArray(null), {
			content: e,
			fills: s,
			corners: 4,
			pieces: 4,
			strokes: [],
			ends: null,
			colours: Ts(t, t.LINEAR),
			buffers: [c]
		};
	}
	unload() {
		let { gl: e, loaded: t } = this;
		t && (t.buffers.forEach((t) => e.deleteBuffer(t)), e.deleteVertexArray(t.fills), [t.colours, t.ends].forEach((t) => e.deleteTexture(t)), this.loaded = null);
	}
};
function Ss(e) {
	let t = e.piece_cell?.length ?? 0, n = e.corners.length, r = n + (e.piece_places?.length ?? 0) / 2, i = new Float32Array(2 * r);
	for (let t = 0; t < n; t++) i[2 * t] = e.vertices[2 * e.corners[t]], i[2 * t + 1] = e.vertices[2 * e.corners[t] + 1];
	e.piece_places && i.set(e.piece_places, 2 * n);
	let a = new Uint32Array(r), o = new Uint32Array(3 * Math.max(0, r - 2 * (e.cells + t))), s = 0, c = (e, t, n) => {
		for (let r = t; r < n; r++) a[r] = e, r < t + 2 || (o[s++] = t, o[s++] = r - 1, o[s++] = r);
	};
	for (let t = 0; t < e.cells; t++) c(t, e.offsets[t], e.offsets[t + 1]);
	let l = s;
	for (let r = 0; r < t; r++) c(e.cells + r, n + e.piece_offsets[r], n + e.piece_offsets[r + 1]);
	return {
		places: i,
		owners: a,
		triangles: o,
		ofCells: l
	};
}
function Cs(e) {
	let { vertices: t, edge_vertices: n, edge_layer: r } = e, i = /* @__PURE__ */ new Uint32Array(256);
	for (let e of r) i[e]++;
	let [a, o, s] = [
		[],
		/* @__PURE__ */ new Uint32Array(256),
		(e.decision?.length ?? 0) / 4
	], c = 0;
	for (let e = 255; e > 0; e--) o[e] = c, i[e] && a.push({
		layer: e,
		first: c,
		count: i[e]
	}), c += i[e];
	s && a.push({
		layer: "decision",
		first: c,
		count: s
	});
	let l = new Float32Array(4 * ms * Math.max(1, Math.ceil((c + s) / ms)));
	for (let e = 0; e < r.length; e++) {
		if (r[e] === 0) continue;
		let [i, a, s] = [
			4 * o[r[e]]++,
			2 * n[2 * e],
			2 * n[2 * e + 1]
		];
		l[i] = t[a], l[i + 1] = t[a + 1], l[i + 2] = t[s], l[i + 3] = t[s + 1];
	}
	return e.decision && l.set(e.decision, 4 * c), {
		places: l,
		strokes: a
	};
}
function ws(e, t, n) {
	return e === "decision" ? [Ga(Ua), 2.5] : [$a(e, t, n), 1.3 - .8 * (e - 1) / Math.max(1, t - 1)];
}
function Ts(e, t) {
	let n = e.createTexture();
	return e.bindTexture(e.TEXTURE_2D, n), e.texParameteri(e.TEXTURE_2D, e.TEXTURE_MIN_FILTER, t), e.texParameteri(e.TEXTURE_2D, e.TEXTURE_MAG_FILTER, t), e.texParameteri(e.TEXTURE_2D, e.TEXTURE_WRAP_S, e.CLAMP_TO_EDGE), e.texParameteri(e.TEXTURE_2D, e.TEXTURE_WRAP_T, e.CLAMP_TO_EDGE), n;
}
function Es(e, t, n) {
	let r = e.createProgram();
	for (let [i, a] of [[e.VERTEX_SHADER, t], [e.FRAGMENT_SHADER, n]]) {
		let t = e.createShader(i);
		if (e.shaderSource(t, a), e.compileShader(t), !e.getShaderParameter(t, e.COMPILE_STATUS)) throw Error(e.getShaderInfoLog(t) ?? "shader");
		e.attachShader(r, t);
	}
	if (e.linkProgram(r), !e.getProgramParameter(r, e.LINK_STATUS)) throw Error(e.getProgramInfoLog(r) ?? "program");
	return r;
}
// src/viewport.ts
function Ds(e) {
	let { x: t, y: n, hx: r, hy: i } = e.window;
	return {
		x: t,
		y: n,
		h: Math.max(r, i)
	};
}
function Os(e, t) {
	return {
		x: e.x,
		y: e.y,
		hx: e.h * Math.max(1, t),
		hy: e.h * Math.max(1, 1 / t)
	};
}
function ks(e, t, n, r, i, a) {
	let o = Math.min(Math.max(e.h / t, a.least), a.most), s = Os(e, i), c = Os({
		...e,
		h: o
	}, i);
	return {
		x: e.x + n * (s.hx - c.hx),
		y: e.y + r * (s.hy - c.hy),
		h: o
	};
}
function As(e, t) {
	return Math.abs(t.x - e.x) + t.hx <= e.hx * (1 + 1e-9) && Math.abs(t.y - e.y) + t.hy <= e.hy * (1 + 1e-9);
}
var js = 1.5, Ms = 8;
function Ns(e, t) {
	let { hx: n, hy: r } = e;
	return {
		...e,
		hx: Math.min(n * js, t.most),
		hy: Math.min(r * js, t.most)
	};
}
function Ps(e, t, n) {
	let r = Math.max(e.hx / t.hx, e.hy / t.hy);
	return As(e, t) && r <= (n ? Ms : js * 1.01);
}
// src/PlaneView.tsx
var Fs = 40, Is = .15;
function Ls(e) {
	let { plane: t, colouring: n, hidden: r, decision: i, dark: a } = e, o = U(null), s = U(null), [c, l] = B([1, 1]), [u, d] = B(null), [f, p] = B(null), [m, h] = B(!1), [g, _] = B(null), v = e.viewport ?? Ds(t), y = c[0] / c[1], b = Os(v, y), x = be(() => ({
		colouring: n,
		hidden: new Set(r),
		decision: i,
		dark: a
	}), [
		n,
		r,
		i,
		a
	]), S = U(x);
	S.current = x;
	let C = be(() => u?.kind === "cells" ? Hs(() => ({
		finder: new ns(u),
		sides: ss(u)
	})) : null, [u]), w = be(() => u?.kind === "cells" && n === "class" ? is(u) : null, [u, n]), T = w ? os(u, w, b) : [];
	ye(() => {
		let e = o.current;
		try {
			s.current = new xs(e);
		} catch (e) {
			p(String(e.message));
		}
		let t = new ResizeObserver(() => {
			let t = devicePixelRatio || 1;
			e.width = Math.max(1, Math.round(e.clientWidth * t)), e.height = Math.max(1, Math.round(e.clientHeight * t)), l([e.clientWidth || 1, e.clientHeight || 1]);
		});
		return t.observe(e), () => t.disconnect();
	}, []);
	let E = `${e.run} ${e.step} ${t.id} ${n === "density"}`, D = U(""), O = U(-Infinity), k = u && D.current === E && (!e.recomputed || Ps(u.window, b, u.kind === "cells"));
	ye(() => {
		if (k || !s.current || c[0] === 1) return;
		let t = new AbortController();
		h(!0);
		let n = async () => {
			try {
				let n = await Rs(e, b, t.signal);
				D.current = E, s.current?.load(n, S.current), d(n), p(null), e.onLoaded(n, s.current);
			} catch (e) {
				if (t.signal.aborted || e instanceof Me && e.kind === "superseded") return;
				p(e.message);
			}
			h(!1);
		}, r = performance.now() - O.current > Fs;
		O.current = performance.now();
		let i = r ? void 0 : setTimeout(n, Fs);
		return r && n(), () => {
			clearTimeout(i), t.abort();
		};
	}, [
		k,
		E,
		b.x,
		b.y,
		b.hx,
		b.hy,
		c[0]
	]), ye(() => {
		s.current?.paint(x), u && s.current && e.onLoaded(u, s.current);
	}, [x]), ye(() => s.current?.draw(b, x), [
		u,
		x,
		b.x,
		b.y,
		b.hx,
		b.hy,
		c
	]);
	let A = (e) => {
		let t = o.current.getBoundingClientRect();
		return [2 * (e.clientX - t.left) / t.width - 1, 1 - 2 * (e.clientY - t.top) / t.height];
	}, j = (n, r = 0, i = 0) => e.onViewport(ks(v, n, r, i, y, t)), M = (t, n) => e.onViewport({
		...v,
		x: v.x - t * b.hx,
		y: v.y - n * b.hy
	}), ee = (e, t, n = !1) => {
		let [r, i] = [b.x + e * b.hx, b.y + t * b.hy];
		_(u ? {
			x: r,
			y: i,
			words: Vs(u, C, r, i),
			spoken: n
		} : null);
	}, N = Ws({
		place: A,
		pan: M,
		zoom: j,
		hover: ee
	});
	H(() => {
		let e = o.current, t = (e) => {
			e.preventDefault(), j(Math.exp(-e.deltaY * (e.deltaMode ? .05 : .0015)), ...A(e));
		};
		return e.addEventListener("wheel", t, { passive: !1 }), () => e.removeEventListener("wheel", t);
	});
	let te = (t) => {
		let n = {
			ArrowLeft: () => M(Is, 0),
			ArrowRight: () => M(-.15, 0),
			ArrowUp: () => M(0, -.15),
			ArrowDown: () => M(0, Is),
			"+": () => j(1.5),
			"=": () => j(1.5),
			"-": () => j(1 / 1.5),
			0: () => e.onViewport(null)
		}[t.key];
		!n || t.ctrlKey || t.metaKey || (t.preventDefault(), n(), ee(0, 0, !0));
	}, ne = u ? zs(u) : m ? "computing regions" : "";
	return /* @__PURE__ */ $("figure", {
		class: "plane",
		"data-ready": k && !m ? "yes" : "no",
		"data-panel": e.name,
		children: [/* @__PURE__ */ $("div", {
			class: "stage",
			children: [
				/* @__PURE__ */ $("canvas", {
					ref: o,
					tabIndex: 0,
					role: "application",
					"aria-label": `Linear regions of ${e.run} at step ${e.step}, ${ne}. Arrow keys pan, plus and minus zoom, 0 shows all.`,
					onKeyDown: te,
					onDblClick: (e) => j(2, ...A(e)),
					...N,
					onPointerLeave: () => _(null)
				}),
				/* @__PURE__ */ $(fs, {
					plane: t,
					window: b,
					size: c,
					points: e.showImages ? e.points : null,
					picture: e.picture,
					labels: T
				}),
				g && /* @__PURE__ */ $("div", {
					class: "crosshair",
					"aria-hidden": "true",
					style: Us(g, b)
				}),
				m && /* @__PURE__ */ $("div", {
					class: "waiting",
					role: "status",
					children: "computing…"
				}),
				f && /* @__PURE__ */ $("p", {
					class: "message",
					role: "alert",
					children: f
				}),
				u?.kind === "raster" && u.more_than !== null && /* @__PURE__ */ $("p", {
					class: "message",
					role: "status",
					children: [
						"More than ",
						u.more_than.toLocaleString("en"),
						" regions: this is their density, estimated. Zoom in."
					]
				}),
				/* @__PURE__ */ $("div", {
					class: "zoom",
					children: [
						/* @__PURE__ */ $("button", {
							type: "button",
							"aria-label": "zoom in",
							title: "zoom in (+)",
							onClick: () => j(2),
							children: "+"
						}),
						/* @__PURE__ */ $("button", {
							type: "button",
							"aria-label": "zoom out",
							title: "zoom out (−)",
							onClick: () => j(.5),
							children: "−"
						}),
						/* @__PURE__ */ $("button", {
							type: "button",
							"aria-label": "show the whole plane",
							title: "the whole plane (0)",
							onClick: () => e.onViewport(null),
							children: "⤢"
						})
					]
				})
			]
		}), /* @__PURE__ */ $("figcaption", { children: [
			/* @__PURE__ */ $("strong", { children: ["step ", e.step.toLocaleString("en")] }),
			" ",
			/* @__PURE__ */ $("span", {
				"aria-live": "polite",
				children: ne
			}),
			/* @__PURE__ */ $("span", {
				class: "window",
				children: [
					" shown: ",
					Bs(b),
					e.viewport ? `, ${co(Ds(t).h / v.h)}×` : ""
				]
			}),
			/* @__PURE__ */ $("dl", {
				class: "under",
				"aria-live": g?.spoken ? "polite" : "off",
				children: (g?.words ?? []).map(([e, t]) => /* @__PURE__ */ $("div", { children: [/* @__PURE__ */ $("dt", { children: e }), /* @__PURE__ */ $("dd", { children: t })] }, e))
			})
		] })]
	});
}
async function Rs(e, t, n) {
	let { to: r, run: i, step: a, plane: o, name: s } = e, { x: c, y: l, hx: u, hy: d } = Ns(t, o), f = e.recomputed ? {
		x: c,
		y: l,
		hx: u,
		hy: d
	} : {};
	return Fe(r, e.colouring === "density" && e.recomputed ? "/api/density" : "/api/cells", {
		run: i,
		step: a,
		plane: o.id,
		view: s,
		...f
	}, n);
}
function zs(e) {
	if (e.kind === "raster") return `${e.label}, estimated`;
	let t = e.exact ? "(exact)" : `(not exact: ${e.undecided.toLocaleString("en")} signs undecided)`;
	return `${lo(e.cells, "region")} ${t} in ${Bs(e.window)}`;
}
function Bs({ hx: e, hy: t }) {
	return `${co(2 * e)} × ${co(2 * t)}`;
}
function Vs(e, t, n, r) {
	let { scale: i } = e.window, [a, o] = [(n - e.window.x) / i, (r - e.window.y) / i], s = (t) => e.classes[t] ?? String(t);
	if (e.kind === "raster") {
		let [t, n] = e.size, r = Math.floor((a * i / e.window.hx + 1) * .5 * n), c = Math.floor((o * i / e.window.hy + 1) * .5 * t);
		if (r < 0 || c < 0 || r >= n || c >= t) return [];
		let l = e.quantity === "boundary_density" ? 1 / i : 1, u = [[e.label, co(e.values[c * n + r] * l)]];
		return e.class && u.push(["class", s(e.class[c * n + r])]), u;
	}
	let { finder: c, sides: l } = t(), u = c.at(a, o);
	if (u < 0) return [];
	let d = [["area", co(e.area[u] * i * i)]];
	e.class && d.push(["class", s(rs(e, u, a, o))]), e.gradient && d.push(["gradient norm", co(e.gradient[u])]);
	let f = cs(e, l, u, a, o);
	if (f) {
		let t = e.sites[e.edge_site[f.edge]];
		d.push(["nearest boundary", co(f.distance * i)]), d.push(["its unit", `${us(e.edge_unit[f.edge], t.shape)} of ${t.name} (${t.kind}, layer ${e.edge_layer[f.edge]})`]);
	}
	return d;
}
function Hs(e) {
	let t;
	return () => t ??= e();
}
function Us(e, t) {
	return {
		left: `${50 + 50 * (e.x - t.x) / t.hx}%`,
		top: `${50 - 50 * (e.y - t.y) / t.hy}%`
	};
}
function Ws({ place: e, pan: t, zoom: n, hover: r }) {
	let i = U(/* @__PURE__ */ new Map());
	return {
		onPointerDown(t) {
			t.currentTarget.setPointerCapture(t.pointerId), i.current.set(t.pointerId, e(t));
		},
		onPointerMove(a) {
			let [o, s] = e(a), c = i.current, l = c.get(a.pointerId);
			if (!l) return r(o, s);
			if (c.size === 1) t(o - l[0], s - l[1]);
			else {
				let [e] = [...c].filter(([e]) => e !== a.pointerId).map(([, e]) => e), t = (t) => Math.hypot(t[0] - e[0], t[1] - e[1]) || 1e-6;
				n(t([o, s]) / t(l), (o + e[0]) / 2, (s + e[1]) / 2);
			}
			c.set(a.pointerId, [o, s]);
		},
		onPointerUp: (e) => void i.current.delete(e.pointerId),
		onPointerCancel: (e) => void i.current.delete(e.pointerId)
	};
}
// src/TimeBar.tsx
var Gs = 250;
function Ks({ name: e, steps: t, step: n, ready: r, onStep: i }) {
	let [a, o] = B(!1), s = Math.max(0, t.indexOf(n));
	return H(() => {
		if (!a) return;
		let e = setInterval(() => {
			r() && (s + 1 < t.length ? i(t[s + 1]) : o(!1));
		}, Gs);
		return () => clearInterval(e);
	}, [
		a,
		s,
		t
	]), /* @__PURE__ */ $("div", {
		class: "time",
		children: [
			/* @__PURE__ */ $("button", {
				type: "button",
				"aria-label": a ? `pause ${e}` : `play ${e}`,
				onClick: () => {
					!a && s === t.length - 1 && i(t[0]), o(!a);
				},
				children: a ? "❚❚" : "▶"
			}),
			/* @__PURE__ */ $("button", {
				type: "button",
				"aria-label": `step back in ${e}`,
				disabled: s === 0,
				onClick: () => i(t[s - 1]),
				children: "‹"
			}),
			/* @__PURE__ */ $("input", {
				type: "range",
				min: 0,
				max: t.length - 1,
				value: s,
				"aria-label": `step of ${e}`,
				"aria-valuetext": `step ${n}`,
				onInput: (e) => i(t[Number(e.currentTarget.value)])
			}),
			/* @__PURE__ */ $("button", {
				type: "button",
				"aria-label": `step on in ${e}`,
				disabled: s >= t.length - 1,
				onClick: () => i(t[s + 1]),
				children: "›"
			}),
			/* @__PURE__ */ $("output", { children: ["step ", n.toLocaleString("en")] })
		]
	});
}
// src/PlanePanel.tsx
function qs({ to: e, name: t, runs: n, run: r, step: i, view: a, dark: o, onRun: s, onStep: c, onView: l }) {
	let u = Js(r, a.plane), d = Be(e, "/api/plane", u ? {
		run: r.id,
		plane: u
	} : null), f = Be(e, "/api/planes", { run: r.id }, r.records), p = ze(a.images && u ? `${r.id} ${u}` : null, () => Ie(e, {
		run: r.id,
		plane: u
	})), [m, h] = B(null), g = U(null), _ = Be(e, "/api/images", r.images ? {
		run: r.id,
		...zo
	} : null), v = U(/* @__PURE__ */ new Map()), [y, b] = B(""), x = r.network ? r.recorded : f.value?.planes.find((e) => e.id === u)?.steps ?? r.recorded, S = uo(x, i), C = (t) => {
		let n = `${r.id} ${t}`;
		return v.current.has(n) || v.current.set(n, e.picture("/api/image", {
			run: r.id,
			index: t
		})), v.current.get(n);
	}, w = () => g.current?.querySelector("figure")?.dataset.ready === "yes", T = (e) => `${r.id.replaceAll("/", "-")}-step${S}${e}`, E = {
		colouring: a.colouring,
		hidden: new Set(a.hidden),
		decision: a.decision,
		dark: o
	}, D = m?.content.kind === "cells" ? m.content : null, O = async () => {
		let e = await Xo(m.scene.canvas, x, async (e) => {
			c(e), await new Promise((e) => setTimeout(e, 50));
			for (let t = 0; t < 600 && !(w() && g.current?.dataset.step === String(e)); t++) await new Promise((e) => setTimeout(e, 50));
		}, (e) => b(`${e} of ${x.length} steps`));
		b(""), Wo(e, T(".gif"));
	};
	return /* @__PURE__ */ $("section", {
		class: "panel",
		ref: g,
		"data-step": S,
		"aria-label": `plane of ${t}`,
		children: [
			/* @__PURE__ */ $("div", {
				class: "row",
				children: [
					n.length > 1 && /* @__PURE__ */ $("select", {
						"aria-label": `run of ${t}`,
						value: r.id,
						onChange: (e) => s(e.currentTarget.value),
						children: n.map((e) => /* @__PURE__ */ $("option", {
							value: e.id,
							children: e.name
						}, e.id))
					}),
					u && /* @__PURE__ */ $("details", {
						class: "menu",
						children: [/* @__PURE__ */ $("summary", { children: "Save" }), /* @__PURE__ */ $("div", { children: [
							/* @__PURE__ */ $("button", {
								type: "button",
								disabled: !m,
								onClick: () => Go(m.scene.canvas, T(".png")),
								children: "PNG"
							}),
							/* @__PURE__ */ $("button", {
								type: "button",
								disabled: !D,
								onClick: () => Wo(qo(D, Ys(g.current, d.value, a), E), T(".svg"), "image/svg+xml"),
								children: "SVG"
							}),
							/* @__PURE__ */ $("button", {
								type: "button",
								disabled: !D,
								onClick: () => Wo(Ko(D), T(".csv"), "text/csv"),
								children: "CSV"
							}),
							/* @__PURE__ */ $("button", {
								type: "button",
								disabled: !m || y !== "",
								onClick: () => void O(),
								children: "GIF over training"
							})
						] })]
					}),
					y && /* @__PURE__ */ $("span", {
						role: "status",
						children: ["GIF: ", y]
					})
				]
			}),
			d.error && /* @__PURE__ */ $("p", {
				class: "message",
				role: "alert",
				children: d.error
			}),
			!u && /* @__PURE__ */ $("p", {
				class: "empty",
				children: [
					"This run has no planes. A monitor that is given ",
					/* @__PURE__ */ $("code", { children: "planes" }),
					" records them, and ",
					/* @__PURE__ */ $("code", { children: "regionscope view" }),
					" with",
					" ",
					/* @__PURE__ */ $("code", { children: "--model" }),
					" and ",
					/* @__PURE__ */ $("code", { children: "--points" }),
					" lays one through points of yours."
				]
			}),
			d.value && S !== null && /* @__PURE__ */ $(Ls, {
				to: e,
				name: t,
				run: r.id,
				step: S,
				recomputed: r.network,
				plane: d.value,
				viewport: a.viewport,
				onViewport: (e) => l({ viewport: e }),
				colouring: a.colouring,
				hidden: a.hidden,
				decision: a.decision,
				dark: o,
				points: p.value,
				showImages: a.images,
				picture: _.value?.sheet ? C : null,
				onLoaded: (e, t) => h({
					content: e,
					scene: t
				})
			}),
			x.length > 1 && S !== null && /* @__PURE__ */ $(Ks, {
				name: t,
				steps: x,
				step: S,
				ready: w,
				onStep: c
			}),
			m && /* @__PURE__ */ $(Zo, {
				content: m.content,
				scale: m.scene.scale,
				colouring: a.colouring,
				hidden: a.hidden,
				decision: a.decision,
				dark: o,
				onHidden: (e) => l({ hidden: e }),
				onDecision: (e) => l({ decision: e })
			}),
			a.images && p.value && /* @__PURE__ */ $(Qs, {
				distances: p.value.distance,
				picture: _.value?.sheet ? C : null
			})
		]
	});
}
function Js(e, t) {
	return t !== null && (e.planes.includes(t) || e.network && !t.startsWith("recorded:")) ? t : e.planes[0] ?? null;
}
function Ys(e, t, n) {
	let r = e.querySelector("canvas");
	return Os(n.viewport ?? Ds(t), r.clientWidth / r.clientHeight);
}
var Xs = 8, Zs = 1e-6;
function Qs({ distances: e, picture: t }) {
	let n = [...e.keys()].sort((t, n) => e[t] - e[n]), r = n.slice(0, Xs), i = ze(t && r.join(), () => Promise.all(r.map(t)));
	return /* @__PURE__ */ $("div", {
		class: "nearby",
		children: [/* @__PURE__ */ $("p", { children: [
			lo(e.length, "image"),
			": median distance from the plane ",
			co(e[n[Math.floor(n.length / 2)]]),
			", nearest"
		] }), /* @__PURE__ */ $("ul", { children: r.map((t, n) => /* @__PURE__ */ $("li", { children: [
			i.value?.[n] && /* @__PURE__ */ $("img", {
				src: i.value[n],
				alt: `image ${t}`,
				width: 32,
				height: 32
			}),
			" ",
			e[t] < Zs ? "on it" : co(e[t])
		] }, t)) })]
	});
}
// src/RunList.tsx
function $s({ to: e, runs: t, chosen: n, onChoose: r }) {
	return /* @__PURE__ */ $("nav", {
		class: "runs",
		"aria-label": "runs",
		children: [/* @__PURE__ */ $("h2", { children: "Runs" }), /* @__PURE__ */ $("ul", { children: t.map((t) => /* @__PURE__ */ $("li", { children: /* @__PURE__ */ $("button", {
			type: "button",
			class: "run",
			"aria-current": t.id === n,
			title: tc(t),
			onClick: () => r(t.id),
			children: [
				t.planes.some((e) => e.startsWith("recorded:")) ? /* @__PURE__ */ $(nc, {
					to: e,
					run: t
				}) : /* @__PURE__ */ $("span", { class: "blank" }),
				/* @__PURE__ */ $("span", {
					class: "name",
					children: t.name
				}),
				/* @__PURE__ */ $("span", {
					class: `state ${t.state}`,
					children: tc(t)
				}),
				/* @__PURE__ */ $("span", {
					class: "scores",
					children: Object.entries(t.scores).map(([e, t]) => `${e.replaceAll("_", " ")} ${co(t)}`).join(", ")
				})
			]
		}) }, t.id)) })]
	});
}
var ec = {
	running: "▶",
	finished: "✓",
	stopped: "❚❚",
	failed: "✕",
	killed: "✕",
	incomplete: "…"
};
function tc(e) {
	return `${e.state === "given" ? "a model" : `${ec[e.state] ?? "●"} ${e.state}`}${e.step === null ? "" : `, step ${e.step.toLocaleString("en")}${e.steps ? ` of ${e.steps.toLocaleString("en")}` : ""}`}, ${lo(e.records, "record")}${e.reason ? `: ${e.reason}` : ""}`;
}
function nc({ to: e, run: t }) {
	let [n, r] = B(null);
	return H(() => {
		let n = !0;
		return e.picture("/api/thumbnail", { run: t.id }).then((e) => n && r(e)), () => void (n = !1);
	}, [t.id, t.records]), n ? /* @__PURE__ */ $("img", {
		src: n,
		alt: "",
		width: 56,
		height: 56
	}) : /* @__PURE__ */ $("span", { class: "blank" });
}
// src/state.ts
var rc = {
	panels: [{
		run: null,
		step: null
	}],
	plane: null,
	viewport: null,
	colouring: "class",
	hidden: [],
	decision: !0,
	images: !1,
	log: !0
};
function ic(e) {
	let t = new URLSearchParams();
	if (e.panels.forEach(({ run: e, step: n }, r) => {
		e !== null && t.set(r ? "run2" : "run", e), n !== null && t.set(r ? "step2" : "step", String(n)), r && t.set("panels", "2");
	}), e.plane !== null && t.set("plane", e.plane), e.viewport) for (let n of [
		"x",
		"y",
		"h"
	]) t.set(n, String(e.viewport[n]));
	return e.colouring !== rc.colouring && t.set("colour", e.colouring), e.hidden.length && t.set("hidden", e.hidden.join(",")), e.decision || t.set("decision", "0"), e.images && t.set("images", "1"), e.log || t.set("log", "0"), t.toString();
}
function ac(e) {
	let t = new URLSearchParams(e.replace(/^#/, "")), n = (e) => {
		let n = t.get(e);
		return n !== null && n.trim() !== "" && Number.isFinite(Number(n)) ? Number(n) : null;
	}, r = (e) => ({
		run: t.get(`run${e}`),
		step: n(`step${e}`)
	}), [i, a, o] = [
		n("x"),
		n("y"),
		n("h")
	], s = t.get("colour");
	return {
		panels: t.get("panels") === "2" ? [r(""), r("2")] : [r("")],
		plane: t.get("plane"),
		viewport: i !== null && a !== null && o !== null && o > 0 ? {
			x: i,
			y: a,
			h: o
		} : null,
		colouring: s !== null && Object.hasOwn(eo, s) ? s : rc.colouring,
		hidden: (t.get("hidden") ?? "").split(",").map(Number).filter((e) => Number.isInteger(e) && e > 0),
		decision: t.get("decision") !== "0",
		images: t.get("images") === "1",
		log: t.get("log") !== "0"
	};
}
// src/App.tsx
var oc = "Keys: arrows pan, + and − zoom, 0 the whole plane, [ and ] step back and on, c next colouring.", sc = 120;
function cc({ to: e, addressed: t }) {
	let n = Ve(e), [r, i] = dc(t), [a, o] = B(null), [s, c] = B(!1), [l, u] = B(null), d = fc(l), f = n.value?.runs ?? [], p = lc(f, r.panels[0]), m = Be(e, "/api/curves", p ? { run: p.id } : null, p?.records), h = Be(e, "/api/planes", p ? { run: p.id } : null, p?.records), g = U(void 0), _ = xe((e) => i((t) => ({
		...t,
		...e
	})), []), v = (e, t) => i((n) => ({
		...n,
		panels: n.panels.map((n, r) => r === e ? {
			...n,
			...t
		} : n)
	})), y = (e) => i((t) => ({
		...t,
		panels: [{
			run: e,
			step: null
		}, ...t.panels.slice(1)],
		viewport: null
	}));
	if (n.error) return /* @__PURE__ */ $("p", {
		class: "explorer message",
		role: "alert",
		children: n.error
	});
	if (!n.value) return /* @__PURE__ */ $("p", {
		class: "explorer empty",
		role: "status",
		children: "Loading…"
	});
	if (!p) return /* @__PURE__ */ $("p", {
		class: "explorer empty",
		children: "There are no runs here as yet. They appear when they are written."
	});
	let b = (e, t, n) => (n === 0 ? a : null) ?? e.step ?? t.recorded.at(-1) ?? 0, x = (e) => {
		clearTimeout(g.current), g.current = setTimeout(() => o(e), e === null ? 0 : sc);
	}, S = (e) => {
		let t = e.target;
		if (e.ctrlKey || e.metaKey || e.altKey || /INPUT|SELECT|TEXTAREA/.test(t.tagName)) return;
		let { recorded: n } = p, i = n.indexOf(uo(n, b(r.panels[0], p, 0)) ?? 0);
		e.key === "[" && i > 0 ? v(0, { step: n[i - 1] }) : e.key === "]" && i + 1 < n.length ? v(0, { step: n[i + 1] }) : e.key === "c" && _({ colouring: uc(r.colouring) });
	}, C = Js(p, r.plane), w = new Set(h.value?.planes.map((e) => e.id));
	return /* @__PURE__ */ $("div", {
		class: "explorer",
		"data-theme": d ? "dark" : "light",
		"data-lm-suppress-shortcuts": "true",
		onKeyDown: S,
		children: [
			/* @__PURE__ */ $("header", { children: [
				/* @__PURE__ */ $("h1", { children: "regionscope" }),
				/* @__PURE__ */ $("p", {
					class: "about",
					children: [
						p.name,
						": ",
						tc(p)
					]
				}),
				/* @__PURE__ */ $("button", {
					type: "button",
					onClick: () => u(d ? "light" : "dark"),
					children: d ? "Light" : "Dark"
				})
			] }),
			f.length > 1 && /* @__PURE__ */ $($s, {
				to: e,
				runs: f,
				chosen: p.id,
				onChoose: y
			}),
			/* @__PURE__ */ $("main", { children: [/* @__PURE__ */ $("div", {
				class: "curves",
				children: [
					/* @__PURE__ */ $("label", {
						class: "option",
						children: [/* @__PURE__ */ $("input", {
							type: "checkbox",
							checked: r.log,
							onChange: () => _({ log: !r.log })
						}), " logarithmic time"]
					}),
					m.error && /* @__PURE__ */ $("p", {
						class: "message",
						role: "alert",
						children: m.error
					}),
					m.value && /* @__PURE__ */ $(ho, {
						curves: m.value,
						step: b(r.panels[0], p, 0),
						log: r.log,
						dark: d,
						onStep: (e) => v(0, { step: e }),
						onLook: x
					})
				]
			}), /* @__PURE__ */ $("div", {
				class: "planes",
				children: [
					/* @__PURE__ */ $("div", {
						class: "row tools",
						children: [
							C && /* @__PURE__ */ $("label", { children: [
								"Plane",
								" ",
								/* @__PURE__ */ $("select", {
									value: C,
									onChange: (e) => _({
										plane: e.currentTarget.value,
										viewport: null
									}),
									children: [h.value?.planes.map((e) => /* @__PURE__ */ $("option", {
										value: e.id,
										children: e.name
									}, e.id)), !w.has(C) && /* @__PURE__ */ $("option", {
										value: C,
										children: C.replace("through:", "through images ").replaceAll(",", ", ")
									})]
								})
							] }),
							p.network && p.images && /* @__PURE__ */ $("button", {
								type: "button",
								onClick: () => c(!0),
								children: "Choose three images…"
							}),
							/* @__PURE__ */ $("label", { children: [
								"Colour by",
								" ",
								/* @__PURE__ */ $("select", {
									value: r.colouring,
									onChange: (e) => _({ colouring: e.currentTarget.value }),
									children: Object.entries(eo).map(([e, t]) => /* @__PURE__ */ $("option", {
										value: e,
										disabled: e === "density" && !p.network,
										children: t
									}, e))
								})
							] }),
							p.images && /* @__PURE__ */ $("label", {
								class: "option",
								children: [/* @__PURE__ */ $("input", {
									type: "checkbox",
									checked: r.images,
									onChange: () => _({ images: !r.images })
								}), " all images"]
							}),
							/* @__PURE__ */ $("label", {
								class: "option",
								children: [
									/* @__PURE__ */ $("input", {
										type: "checkbox",
										checked: r.panels.length > 1,
										onChange: () => _({ panels: r.panels.length > 1 ? r.panels.slice(0, 1) : [r.panels[0], {
											run: p.id,
											step: p.recorded[0] ?? null
										}] })
									}),
									" ",
									"side by side"
								]
							})
						]
					}),
					!p.network && p.network_reason && /* @__PURE__ */ $("p", {
						class: "note",
						children: p.network_reason
					}),
					/* @__PURE__ */ $("div", {
						class: `panels n${r.panels.length}`,
						children: r.panels.map((t, n) => {
							let i = lc(f, t);
							return /* @__PURE__ */ $(qs, {
								to: e,
								name: `panel-${n + 1}`,
								runs: n ? f : [],
								run: i,
								step: b(t, i, n),
								view: r,
								dark: d,
								onRun: (e) => v(n, {
									run: e,
									step: null
								}),
								onStep: (e) => v(n, { step: e }),
								onView: _
							}, n);
						})
					}),
					/* @__PURE__ */ $("p", {
						class: "help",
						children: oc
					})
				]
			})] }),
			s && /* @__PURE__ */ $(Bo, {
				to: e,
				run: p.id,
				onPlane: (e) => _({
					plane: e,
					viewport: null
				}),
				onClose: () => c(!1)
			})
		]
	});
}
function lc(e, t) {
	return e.find((e) => e.id === t.run) ?? e[0];
}
function uc(e) {
	let t = Object.keys(eo);
	return t[(t.indexOf(e) + 1) % t.length];
}
function dc(e) {
	let [t, n] = B(() => e ? ac(location.hash) : rc);
	return H(() => {
		if (!e) return;
		let n = setTimeout(() => history.replaceState(null, "", `#${ic(t)}`), 100);
		return () => clearTimeout(n);
	}, [t]), H(() => {
		if (!e) return;
		let t = () => n(ac(location.hash));
		return addEventListener("hashchange", t), () => removeEventListener("hashchange", t);
	}, []), [t, n];
}
function fc(e) {
	let t = matchMedia("(prefers-color-scheme: dark)"), [n, r] = B(t.matches);
	return H(() => {
		let e = () => r(t.matches);
		return t.addEventListener("change", e), () => t.removeEventListener("change", e);
	}, []), e === null ? n : e === "dark";
}
// src/widget.tsx
var pc = { render({ model: e, el: t }) {
	return L(/* @__PURE__ */ $(cc, {
		to: Re(e),
		addressed: !1
	}), t), () => L(null, t);
} };
export { pc as default };
