package relayout.spark;

import java.math.BigDecimal;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.WeakHashMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;

import com.codahale.metrics.MetricRegistry;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.iceberg.BaseMetadataTable;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.TableScan;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.expressions.ManifestEvaluator;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.spark.PathIdentifier;
import org.apache.iceberg.spark.Spark3Util;
import org.apache.iceberg.spark.SparkV2Filters;
import org.apache.iceberg.spark.TimeTravel;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.iceberg.types.TypeUtil;
import org.apache.iceberg.types.Types.NestedField;
import org.apache.iceberg.util.SnapshotUtil;
import org.apache.spark.SparkEnv;
import org.apache.spark.metrics.source.Source;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EvalMode;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InputFileBlockLength;
import org.apache.spark.sql.catalyst.expressions.InputFileBlockStart;
import org.apache.spark.sql.catalyst.expressions.InputFileName;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sample;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.execution.CommandExecutionMode;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Strategy$;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;
import scala.Some;
import scala.collection.JavaConverters;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractPartialFunction;
import scala.runtime.BoxedUnit;

/**
 * Puts the routing rule into a session: named in spark.sql.extensions, or applied to a session that runs.
 *
 * The compiler that Spark carries knows neither lambdas nor inferred types, so there are none in this file.
 */
public class Routing extends AbstractFunction1 {
  static final String SWITCH = "spark.relayout.routing";
  static final String LAYOUT = "spark.relayout.routing.layout";
  static final String BUDGET_MS = "spark.relayout.routing.budget-ms";
  static final String OFF = "off";
  static final String REQUIRE = "require";

  private static final Set EXTENDED = Collections.newSetFromMap(new WeakHashMap());

  public Object apply(Object given) {
    SparkSessionExtensions extensions = (SparkSessionExtensions) given;
    synchronized (EXTENDED) {
      if (!EXTENDED.add(extensions)) return BoxedUnit.UNIT;
    }
    extensions.injectPreCBORule(new AbstractFunction1() {
      public Object apply(Object session) {
        return new RoutingRule((SparkSession) session);
      }
    });
    return BoxedUnit.UNIT;
  }

  /** What would be chosen for a statement and why, as JSON; nothing of it is run. */
  public static String explain(Object session, String statement) throws Exception {
    org.apache.spark.sql.classic.SparkSession spark = (org.apache.spark.sql.classic.SparkSession) session;
    return explainPlan(spark, spark.sessionState().sqlParser().parsePlan(statement));
  }

  /** The same for a query that was prepared as a DataFrame. */
  public static String explainFrame(Object frame) throws Exception {
    org.apache.spark.sql.classic.Dataset dataset = (org.apache.spark.sql.classic.Dataset) frame;
    return explainPlan(
        (org.apache.spark.sql.classic.SparkSession) dataset.sparkSession(), dataset.queryExecution().logical());
  }

  private static String explainPlan(org.apache.spark.sql.classic.SparkSession spark, LogicalPlan plan)
      throws Exception {
    QueryExecution execution = spark.sessionState().executePlan(plan, CommandExecutionMode.SKIP());
    // Analysed first: what analysis reads on its own is no part of the query's time to choose.
    boolean command = execution.analyzed() instanceof Command;
    ArrayList told = new ArrayList();
    Recorder.TOLD.set(told);
    try {
      execution.optimizedPlan();
    } finally {
      Recorder.TOLD.remove();
    }
    LinkedHashMap document = new LinkedHashMap();
    document.put("command", Boolean.valueOf(command));
    document.put("relations", told);
    return Json.text(document);
  }

  /** Optimise a prepared query now, so that what is set for this one query decides it; why that cannot be, or "". */
  public static String decide(Object frame) {
    try {
      ((org.apache.spark.sql.classic.Dataset) frame).queryExecution().optimizedPlan();
    } catch (NotRouted unmet) {
      return unmet.reason;
    }
    return "";
  }

  /** Counts since the last call, as JSON: considered, matched and used by alternate. */
  public static String takeCounts() throws Exception {
    return Json.text(Counts.take());
  }

  /** Milliseconds that each choice took since the last call, as JSON; the newest thousand. */
  public static String takeChoices() throws Exception {
    return Json.text(Counts.takeChoices());
  }

  /** Forget how fresh alternates were; for whoever just committed in this process. */
  public static void forget() {
    Candidates.KNOWN.clear();
  }
}

/** Where a query is told to stay or to go, and for how long the rule may look. */
final class Wish {
  final boolean off;
  final boolean required;
  final String layout;
  final long deadline;
  final boolean caseSensitive;
  final boolean explained;

  Wish(SQLConf conf, boolean explained) {
    String told = conf.getConfString(Routing.SWITCH, "on").trim().toLowerCase();
    this.off = told.equals(Routing.OFF) || told.equals("false");
    this.required = told.equals(Routing.REQUIRE);
    this.layout = conf.getConfString(Routing.LAYOUT, "").trim();
    long budget = 150;
    try {
      budget = Long.parseLong(conf.getConfString(Routing.BUDGET_MS, "150").trim());
    } catch (NumberFormatException unreadable) {
      RoutingRule.LOG.warn("{} is not a number of milliseconds", Routing.BUDGET_MS);
    }
    // Who asks for an explanation wants every figure, however long it takes to find them.
    // The last fifth of the budget is for what cannot be interrupted.
    long patience = explained ? TimeUnit.MINUTES.toNanos(10) : TimeUnit.MILLISECONDS.toNanos(budget) * 4 / 5;
    this.deadline = System.nanoTime() + patience;
    this.caseSensitive = conf.caseSensitiveAnalysis();
    this.explained = explained;
  }

  boolean wants(Candidate candidate) {
    return layout.isEmpty() || layout.equals(candidate.table) || layout.equals(candidate.name);
  }

  long left() {
    return Math.max(0, deadline - System.nanoTime());
  }
}

/** A query was told to be routed, or where to, and cannot be. */
final class NotRouted extends IllegalArgumentException {
  final String reason;

  NotRouted(String reason) {
    super("[RELAYOUT_NOT_ROUTED] " + reason);
    this.reason = reason;
  }
}

/** Looks at every Iceberg relation of a query and lets another layout of the same rows stand in for it. */
final class RoutingRule extends Rule {
  static final Logger LOG = LoggerFactory.getLogger("relayout.routing");

  /** Read options that change how files are read and not which rows. */
  private static final Set HARMLESS = new HashSet(Arrays.asList(new String[] {
    "path", "split-size", "lookback", "file-open-cost", "vectorization-enabled", "batch-size", "locality",
    "aggregate-push-down-enabled"
  }));

  private final SparkSession session;

  RoutingRule(SparkSession session) {
    this.session = session;
  }

  public TreeNode apply(TreeNode plan) {
    Recorder recorder = new Recorder();
    try {
      Wish wish = new Wish(conf(), recorder.explains());
      if (wish.off && !wish.explained) return plan;
      Tree tree = new Tree(this, session, wish, recorder);
      LogicalPlan routed = tree.routed((LogicalPlan) plan);
      if (wish.required && tree.refused != null && !wish.explained) throw new NotRouted(tree.refused);
      return routed;
    } catch (NotRouted unmet) {
      throw unmet;
    } catch (Throwable failure) {
      // Whatever goes wrong here, the query is answered by the base.
      LOG.warn("no routing: {}", failure.toString(), failure);
      recorder.failed(failure);
      return plan;
    }
  }

  /** Why a relation has to stay, whatever alternates there are; empty when it need not. */
  String staysBecause(DataSourceV2Relation relation) {
    SparkTable table = (SparkTable) relation.table();
    if (table.table() instanceof BaseMetadataTable) return "METADATA_TABLE";
    if (table.branch() != null || conf().contains("spark.wap.branch")) return "BRANCH";
    if (relation.catalog().isEmpty() || relation.identifier().isEmpty()) return "NO_CATALOG";
    if (!(relation.catalog().get() instanceof TableCatalog)) return "NO_CATALOG";
    if (relation.identifier().get() instanceof PathIdentifier) return "NO_CATALOG";
    Iterator options = relation.options().keySet().iterator();
    while (options.hasNext()) {
      if (!HARMLESS.contains(((String) options.next()).toLowerCase())) return "READ_OPTIONS";
    }
    if (table.snapshotId() == null) return "EMPTY";
    Iterator columns = JavaConverters.asJava(relation.output()).iterator();
    while (columns.hasNext()) {
      if (((AttributeReference) columns.next()).metadata().contains("__metadata_col")) return "METADATA_COLUMN";
    }
    return "";
  }
}

/** One walk over one plan. */
final class Tree {
  private final RoutingRule rule;
  private final SparkSession session;
  private final Wish wish;
  private final Recorder recorder;
  private String everything = "";

  /** Why a table that has alternates was not routed; null when all were. */
  String refused;

  Tree(RoutingRule rule, SparkSession session, Wish wish, Recorder recorder) {
    this.rule = rule;
    this.session = session;
    this.wish = wish;
    this.recorder = recorder;
  }

  LogicalPlan routed(LogicalPlan plan) throws Exception {
    if (plan.isStreaming()) return plan;
    if (wish.off) everything = "SWITCHED_OFF";
    if (namesFiles(plan)) everything = "FILE_NAME";
    return walk(plan, new Above());
  }

  private LogicalPlan walk(LogicalPlan plan, final Above above) throws Exception {
    if (plan instanceof DataSourceV2Relation) return relation(null, (DataSourceV2Relation) plan, above);
    if (plan instanceof Filter && ((Filter) plan).child() instanceof DataSourceV2Relation) {
      return relation((Filter) plan, (DataSourceV2Relation) ((Filter) plan).child(), above);
    }
    final Above below = above.and(plan);
    final Exception[] failed = new Exception[1];
    LogicalPlan walked = (LogicalPlan) plan.mapChildren(new AbstractFunction1() {
      public Object apply(Object child) {
        try {
          return failed[0] == null ? walk((LogicalPlan) child, below) : child;
        } catch (Exception failure) {
          failed[0] = failure;
          return child;
        }
      }
    });
    if (failed[0] != null) throw failed[0];
    return walked;
  }

  private LogicalPlan relation(Filter filter, DataSourceV2Relation relation, Above above) throws Exception {
    LogicalPlan unchanged = filter == null ? relation : filter;
    if (!(relation.table() instanceof SparkTable)) return unchanged;
    String stays = above.stays.isEmpty() ? everything : above.stays;
    if (stays.isEmpty()) stays = rule.staysBecause(relation);
    SparkTable table = (SparkTable) relation.table();
    boolean known = table.table().properties().containsKey(Candidates.ALTERNATES);
    if (stays.isEmpty() && !known) stays = "NO_ALTERNATES";
    if (!stays.isEmpty() && !wish.explained) {
      if (known && !stays.equals("WRITE")) refused = table.name() + " stays on the base: " + stays;
      return unchanged;
    }
    Site site = new Site(session, wish, filter, relation, above);
    if (!stays.isEmpty()) {
      recorder.stayed(site, stays);
      return unchanged;
    }
    site.choose();
    recorder.chose(site);
    if (site.chosen == null) {
      refused = site.refusal();
      return unchanged;
    }
    return site.rewritten();
  }

  /** Whether anything asks for the names of the files that are read. */
  private static boolean namesFiles(LogicalPlan plan) {
    Iterator expressions = JavaConverters.asJava(plan.expressions()).iterator();
    while (expressions.hasNext()) {
      if (namesFiles((Expression) expressions.next())) return true;
    }
    Iterator children = JavaConverters.asJava(plan.children()).iterator();
    while (children.hasNext()) {
      if (namesFiles((LogicalPlan) children.next())) return true;
    }
    return false;
  }

  private static boolean namesFiles(Expression expression) {
    if (expression instanceof InputFileName) return true;
    if (expression instanceof InputFileBlockStart || expression instanceof InputFileBlockLength) return true;
    Iterator children = JavaConverters.asJava(expression.children()).iterator();
    while (children.hasNext()) {
      if (namesFiles((Expression) children.next())) return true;
    }
    return false;
  }
}

/** What stands above a relation, as far as it matters below. */
final class Above {
  /** Why nothing below may be routed. */
  String stays = "";

  /** What the nearest operator above takes; null when it takes every column. */
  AttributeSet taken;

  /** A join may prune an unfiltered relation while the query runs, which no file plan can foresee. */
  boolean joined;

  /** Answered from metadata, or from the first few rows that are found: reading less cannot help. */
  boolean cheap;

  Above and(LogicalPlan plan) {
    Above next = new Above();
    next.stays = stays;
    if (plan instanceof Command) next.stays = "WRITE";
    if (plan instanceof Sample) next.stays = "SAMPLE";
    next.joined = joined || plan instanceof Join;
    if (plan instanceof Project) {
      next.taken = plan.references();
      next.cheap = cheap;
    } else if (plan instanceof Aggregate) {
      next.taken = plan.references();
      next.cheap = ((Aggregate) plan).groupingExpressions().isEmpty() && foundInMetadata(plan.expressions());
    } else if (plan instanceof LocalLimit || plan instanceof GlobalLimit) {
      next.cheap = true;
    }
    return next;
  }

  /** Whether nothing but counts, smallest and largest values is asked for. */
  private static boolean foundInMetadata(scala.collection.immutable.Seq expressions) {
    Iterator each = JavaConverters.asJava(expressions).iterator();
    while (each.hasNext()) {
      Expression expression = (Expression) each.next();
      if (expression instanceof AggregateFunction) {
        boolean known = expression instanceof Count || expression instanceof Min || expression instanceof Max;
        if (!known) return false;
      }
      if (!foundInMetadata(expression.children())) return false;
    }
    return true;
  }
}

/** One relation of a query: what is asked of it, which layouts could answer, and which one does. */
final class Site {
  final SparkSession session;
  final Wish wish;
  final Filter filter;
  final DataSourceV2Relation relation;
  final Above above;
  final SparkTable base;
  final ArrayList conditions = new ArrayList();
  final ArrayList used = new ArrayList();
  final Offer baseOffer;
  final ArrayList offers = new ArrayList();
  final long began = System.nanoTime();
  Offer chosen;
  long nanos;

  Site(SparkSession session, Wish wish, Filter filter, DataSourceV2Relation relation, Above above) {
    this.session = session;
    this.wish = wish;
    this.filter = filter;
    this.relation = relation;
    this.above = above;
    this.base = (SparkTable) relation.table();
    if (filter != null) conditions.addAll(Conjuncts.of(filter.condition()));
    Iterator columns = JavaConverters.asJava(relation.output()).iterator();
    while (columns.hasNext()) {
      AttributeReference column = (AttributeReference) columns.next();
      boolean filtered = filter != null && filter.condition().references().contains(column);
      if (filtered || above.taken == null || above.taken.contains(column)) used.add(column);
    }
    this.baseOffer = new Offer(null);
    baseOffer.parts.add(new Part(base, base.snapshotId(), conditions, wish.caseSensitive));
  }

  /** Whether any condition says more than that a column is not null, which Spark adds to every join key. */
  boolean selective() {
    for (int i = 0; i < conditions.size(); i++) {
      if (!(conditions.get(i) instanceof IsNotNull)) return true;
    }
    return false;
  }

  void choose() throws Exception {
    List candidates = Candidates.of(this);
    for (int i = 0; i < candidates.size(); i++) offers.add(offer((Candidate) candidates.get(i)));
    ArrayList possible = new ArrayList();
    possible.add(baseOffer);
    for (int i = 0; i < offers.size(); i++) {
      if (((Offer) offers.get(i)).code == null) possible.add(offers.get(i));
    }
    if (possible.size() > 1 || wish.explained) Costs.find(possible, openCost(), wish);
    decide(possible);
    nanos = System.nanoTime() - began;
    if (!wish.explained) Counts.count(this);
  }

  private Offer offer(Candidate candidate) {
    Offer offer = new Offer(candidate);
    offer.code = candidate.code;
    if (offer.code == null && !wish.wants(candidate)) offer.code = "OTHER_LAYOUT_ASKED";
    if (offer.code == null) offer.code = candidate.lacks(this);
    boolean forced = !wish.layout.isEmpty();
    if (offer.code == null && !forced && !selective() && (above.joined || above.cheap)) offer.code = "NO_FILTER";
    if (offer.code != null) return offer;
    if (candidate.account.whole()) {
      offer.parts.add(new Part(candidate.pinned, candidate.pinned.snapshotId(), conditions, wish.caseSensitive));
      return offer;
    }
    if (!forced && !selective()) {
      offer.code = "NO_FILTER";
      return offer;
    }
    if (candidate.account.batches.size() > Account.MOST_HYBRID_BATCHES) {
      offer.code = "TOO_MANY_BATCHES";
      return offer;
    }
    offer.split = Split.of(candidate.account, relation);
    if (offer.split == null) {
      offer.code = "BATCH_COLUMN";
      return offer;
    }
    offer.parts.add(new Part(candidate.pinned, candidate.pinned.snapshotId(),
        joined(conditions, offer.split.alternate), wish.caseSensitive));
    offer.parts.add(new Part(base, base.snapshotId(), joined(conditions, offer.split.base), wish.caseSensitive));
    return offer;
  }

  private void decide(ArrayList possible) {
    boolean forced = !wish.layout.isEmpty() && !wish.layout.equals("base");
    Offer best = baseOffer.known() ? baseOffer : null;
    for (int i = 1; i < possible.size(); i++) {
      Offer offer = (Offer) possible.get(i);
      if (offer.code != null) continue;
      if (forced) best = offer;
      else if (best != null && offer.known() && offer.cost() < best.cost()) best = offer;
    }
    // Without any figure for the base nothing can be said to be less.
    if (best == null) best = baseOffer;
    for (int i = 0; i < possible.size(); i++) {
      Offer offer = (Offer) possible.get(i);
      if (offer.code == null) offer.code = offer == best ? "CHOSEN" : offer.known() ? "MORE_BYTES" : "BUDGET";
    }
    if (forced && best == baseOffer && !wish.explained) {
      throw new NotRouted("layout " + wish.layout + " cannot serve " + base.name() + ": " + reasons());
    }
    chosen = best == baseOffer ? null : best;
  }

  String refusal() {
    return base.name() + " stays on the base: " + reasons();
  }

  private String reasons() {
    ArrayList told = new ArrayList();
    for (int i = 0; i < offers.size(); i++) {
      Offer offer = (Offer) offers.get(i);
      told.add(offer.candidate.table + " " + offer.code);
    }
    return told.isEmpty() ? "NO_ALTERNATES" : told.toString();
  }

  long openCost() {
    String told = (String) base.table().properties().get("read.split.open-file-cost");
    try {
      return told == null ? 4194304L : Long.parseLong(told);
    } catch (NumberFormatException unreadable) {
      return 4194304L;
    }
  }

  LogicalPlan rewritten() {
    DataSourceV2Relation other = relation.copy(chosen.candidate.pinned, relation.output(), relation.catalog(),
        new Some(chosen.candidate.identifier), withoutPath(relation.options()), Option.empty());
    if (chosen.split == null) return filter == null ? other : new Filter(filter.condition(), other);
    return Hybrid.plan(this, other);
  }

  private static CaseInsensitiveStringMap withoutPath(CaseInsensitiveStringMap options) {
    HashMap kept = new HashMap(options.asCaseSensitiveMap());
    kept.keySet().removeIf(new java.util.function.Predicate() {
      public boolean test(Object key) {
        return ((String) key).equalsIgnoreCase("path");
      }
    });
    return new CaseInsensitiveStringMap(kept);
  }

  static ArrayList joined(List first, List second) {
    ArrayList all = new ArrayList(first);
    all.addAll(second);
    return all;
  }
}

/** One layout that could answer, with what it would read. */
final class Offer {
  /** Null for the base itself. */
  final Candidate candidate;

  final ArrayList parts = new ArrayList();
  Split split;
  String code;
  Cost cost;
  long openCost;

  Offer(Candidate candidate) {
    this.candidate = candidate;
  }

  boolean known() {
    return cost != null;
  }

  long cost() {
    return cost.bytes + openCost * cost.files;
  }
}

/** A scan: a table at a snapshot under conditions. */
final class Part {
  final org.apache.iceberg.Table table;
  final Long snapshotId;
  final org.apache.iceberg.expressions.Expression condition;
  final boolean caseSensitive;
  final String key;

  Part(SparkTable table, Long snapshotId, List conditions, boolean caseSensitive) {
    this.table = table.table();
    this.snapshotId = snapshotId;
    this.caseSensitive = caseSensitive;
    org.apache.iceberg.expressions.Expression all = Expressions.alwaysTrue();
    for (int i = 0; i < conditions.size(); i++) {
      Option translated = DataSourceV2Strategy$.MODULE$.translateFilterV2((Expression) conditions.get(i));
      if (translated.isEmpty()) continue;
      org.apache.iceberg.expressions.Expression one = SparkV2Filters.convert((Predicate) translated.get());
      if (one != null) all = Expressions.and(all, one);
    }
    this.condition = all;
    this.key = table.table() instanceof BaseMetadataTable
        ? null : this.table.uuid() + "/" + snapshotId + "/" + caseSensitive + "/" + all;
  }
}

/** A map that forgets what was not asked for longest. */
final class Newest extends LinkedHashMap {
  private final int most;

  Newest(int most) {
    super(64, 0.75f, true);
    this.most = most;
  }

  protected boolean removeEldestEntry(Map.Entry eldest) {
    return size() > most;
  }
}

/** How much a scan reads. Not exact: no more than so much was looked at, or guessed from the manifest list. */
final class Cost {
  final long files;
  final long bytes;
  final boolean exact;

  Cost(long files, long bytes, boolean exact) {
    this.files = files;
    this.bytes = bytes;
    this.exact = exact;
  }

  Cost plus(Cost other) {
    return new Cost(files + other.files, bytes + other.bytes, exact && other.exact);
  }
}

/** Finds what each layout reads: first from manifest lists, then from whole file plans, both remembered. */
final class Costs {
  private static final Map EXACT = Collections.synchronizedMap(new Newest(4096));
  private static final Map LEAST = Collections.synchronizedMap(new Newest(4096));

  static final ExecutorService WORKERS = Executors.newCachedThreadPool(new ThreadFactory() {
    public Thread newThread(Runnable work) {
      Thread thread = new Thread(work, "relayout-routing");
      thread.setDaemon(true);
      return thread;
    }
  });

  static void find(List offers, final long openCost, Wish wish) throws Exception {
    final AtomicLong best = new AtomicLong(Long.MAX_VALUE);
    ArrayList unknown = new ArrayList();
    for (int i = 0; i < offers.size(); i++) {
      Offer offer = (Offer) offers.get(i);
      offer.openCost = openCost;
      offer.cost = remembered(offer, false);
      if (offer.cost == null) unknown.add(offer);
      else best.set(Math.min(best.get(), offer.cost()));
    }
    ArrayList open = new ArrayList();
    for (int i = 0; i < unknown.size(); i++) {
      Offer offer = (Offer) unknown.get(i);
      // What lost before that far loses again.
      Cost least = wish.explained ? null : remembered(offer, true);
      if (least != null && least.bytes + openCost * least.files > best.get()) offer.cost = least;
      else open.add(offer);
    }
    if (open.isEmpty()) return;
    final boolean everything = wish.explained;
    Measuring[] running = new Measuring[open.size()];
    for (int i = 0; i < running.length; i++) {
      running[i] = new Measuring((Offer) open.get(i), openCost, best, everything);
      running[i].future = WORKERS.submit(running[i]);
    }
    for (int i = 0; i < running.length; i++) {
      try {
        running[i].future.get(wish.left(), TimeUnit.NANOSECONDS);
      } catch (TimeoutException late) {
        // It goes on by itself, so that the next query of this kind finds the figures.
        RoutingRule.LOG.debug("routing budget spent on {}", running[i].offer.candidate);
      } catch (ExecutionException failure) {
        if (running[i].offer.candidate == null) throw failure;
        // Files that are gone, say: the others may still serve.
        RoutingRule.LOG.warn("alternate {} is left out: {}", running[i].offer.candidate, failure.toString());
        running[i].offer.code = "UNREADABLE";
        continue;
      }
      running[i].offer.cost = running[i].cost();
    }
  }

  /** What is known of all parts, exactly or at least; null when nothing is known of one. */
  private static Cost remembered(Offer offer, boolean least) {
    Cost sum = new Cost(0, 0, true);
    for (int i = 0; i < offer.parts.size(); i++) {
      Part part = (Part) offer.parts.get(i);
      Cost known = known(part);
      if (known == null && least && part.key != null) known = (Cost) LEAST.get(part.key);
      if (known == null) return null;
      sum = sum.plus(known);
    }
    return sum;
  }

  /** At least so much is read, for all that anybody looked. */
  static void rememberLeast(Part part, long files, long bytes) {
    if (part.key != null) LEAST.put(part.key, new Cost(files, bytes, false));
  }

  static Cost known(Part part) {
    return part.key == null ? null : (Cost) EXACT.get(part.key);
  }

  static void remember(Part part, Cost cost) {
    if (part.key != null) EXACT.put(part.key, cost);
  }
}

/** Measures one layout in a thread of its own; what is known so far can be asked for at any time. */
final class Measuring implements Callable {
  private static final long RACED_FILES = 64;

  final Offer offer;
  private final long openCost;
  private final AtomicLong best;
  private final boolean everything;
  Future future;
  private volatile Cost bound;
  private volatile Cost counted = new Cost(0, 0, false);
  private volatile boolean done;

  Measuring(Offer offer, long openCost, AtomicLong best, boolean everything) {
    this.offer = offer;
    this.openCost = openCost;
    this.best = best;
    this.everything = everything;
  }

  public Object call() throws Exception {
    Cost guessed = new Cost(0, 0, false);
    for (int i = 0; i < offer.parts.size(); i++) guessed = guessed.plus(bound((Part) offer.parts.get(i)));
    bound = guessed;
    for (int i = 0; i < offer.parts.size(); i++) {
      if (!measured((Part) offer.parts.get(i), counted)) {
        done = true;
        return null;
      }
    }
    counted = new Cost(counted.files, counted.bytes, true);
    done = true;
    long total = counted.bytes + openCost * counted.files;
    long least = best.get();
    while (total < least && !best.compareAndSet(least, total)) least = best.get();
    return null;
  }

  /** The exact cost, else the guess but not less than what was counted; null when nothing is known. */
  Cost cost() {
    if (done || bound == null) return done ? counted : null;
    Cost so_far = counted;
    return new Cost(Math.max(bound.files, so_far.files), Math.max(bound.bytes, so_far.bytes), false);
  }

  /** Adds the part's files to what was counted; false when that became more than another layout reads in all. */
  private boolean measured(Part part, Cost before) throws Exception {
    Cost known = Costs.known(part);
    if (known != null) {
      counted = before.plus(known);
      return true;
    }
    if (part.snapshotId == null) return true;
    long files = 0;
    long bytes = 0;
    TableScan scan = (TableScan) ((TableScan) ((TableScan) part.table.newScan()
        .useSnapshot(part.snapshotId.longValue()).caseSensitive(part.caseSensitive))
        .filter(part.condition)).ignoreResiduals();
    CloseableIterable tasks = scan.planFiles();
    try {
      Iterator each = tasks.iterator();
      while (each.hasNext()) {
        FileScanTask task = (FileScanTask) each.next();
        files += task.filesCount();
        bytes += task.sizeBytes();
        if (files % RACED_FILES == 0) {
          counted = new Cost(before.files + files, before.bytes + bytes, false);
          if (!everything && counted.bytes + openCost * counted.files > best.get()) {
            Costs.rememberLeast(part, files, bytes);
            return false;
          }
        }
      }
    } finally {
      tasks.close();
    }
    Cost found = new Cost(files, bytes, true);
    Costs.remember(part, found);
    counted = before.plus(found);
    return true;
  }

  /** Files of the manifests that the condition does not rule out, each taken to be of average size. */
  private static Cost bound(Part part) {
    if (part.snapshotId == null) return new Cost(0, 0, true);
    Snapshot snapshot = part.table.snapshot(part.snapshotId.longValue());
    long files = 0;
    Iterator manifests = snapshot.dataManifests(part.table.io()).iterator();
    while (manifests.hasNext()) {
      ManifestFile manifest = (ManifestFile) manifests.next();
      PartitionSpec spec = (PartitionSpec) part.table.specs().get(Integer.valueOf(manifest.partitionSpecId()));
      if (ManifestEvaluator.forRowFilter(part.condition, spec, part.caseSensitive).eval(manifest)) {
        if (manifest.addedFilesCount() != null) files += manifest.addedFilesCount().longValue();
        if (manifest.existingFilesCount() != null) files += manifest.existingFilesCount().longValue();
      }
    }
    long all = number(snapshot, "total-data-files");
    return new Cost(files, all == 0 ? 0 : files * (number(snapshot, "total-files-size") / all), false);
  }

  private static long number(Snapshot snapshot, String entry) {
    String told = (String) snapshot.summary().get(entry);
    return told == null ? 0 : Long.parseLong(told);
  }
}

/** What an alternate's snapshot holds of a base snapshot: everything but the batches, or only them. */
final class Account {
  static final String BASE_SNAPSHOT = "relayout.base-snapshot";
  static final String STALE = "relayout.stale-batches";
  static final String FRESH = "relayout.fresh-batches";
  static final String ALL_STALE = "*";
  static final int MOST_HYBRID_BATCHES = 64;

  final long baseSnapshotId;
  final List batches;
  final boolean only;

  Account(long baseSnapshotId, List batches, boolean only) {
    this.baseSnapshotId = baseSnapshotId;
    this.batches = batches;
    this.only = only;
  }

  boolean whole() {
    return !only && batches.isEmpty();
  }

  boolean empty() {
    return only && batches.isEmpty();
  }

  /** The account in a snapshot's summary; null when it has none. */
  static Account of(Map summary) throws Exception {
    String base = (String) summary.get(BASE_SNAPSHOT);
    if (base == null) return null;
    long id = Long.parseLong(base);
    String stale = (String) summary.get(STALE);
    String fresh = (String) summary.get(FRESH);
    if (stale != null && !stale.equals(ALL_STALE)) return new Account(id, Json.list(stale), false);
    if (stale == null && fresh != null) return new Account(id, Json.list(fresh), true);
    return new Account(id, new ArrayList(), true);
  }

  /** After these batches changed in the base. */
  Account without(List gone) {
    for (int i = 0; i < gone.size(); i++) {
      if (((Map) gone.get(i)).isEmpty()) return new Account(baseSnapshotId, new ArrayList(), true);
    }
    ArrayList kept = new ArrayList();
    if (only) {
      for (int i = 0; i < batches.size(); i++) {
        boolean touched = false;
        for (int j = 0; j < gone.size(); j++) touched |= overlap((Map) batches.get(i), (Map) gone.get(j));
        if (!touched) kept.add(batches.get(i));
      }
    } else {
      kept.addAll(batches);
      for (int i = 0; i < gone.size(); i++) {
        if (!kept.contains(gone.get(i))) kept.add(gone.get(i));
      }
    }
    return new Account(baseSnapshotId, kept, only);
  }

  /** Whether a row may be in both batches. */
  private static boolean overlap(Map one, Map other) {
    Iterator entries = one.entrySet().iterator();
    while (entries.hasNext()) {
      Map.Entry entry = (Map.Entry) entries.next();
      if (other.containsKey(entry.getKey()) && !same(entry.getValue(), other.get(entry.getKey()))) return false;
    }
    return true;
  }

  private static boolean same(Object one, Object other) {
    if (one instanceof Number && other instanceof Number) {
      return new BigDecimal(one.toString()).compareTo(new BigDecimal(other.toString())) == 0;
    }
    return one == null ? other == null : one.equals(other);
  }
}

/** The snapshots that lead to a base's pinned one, and what happened on the way. */
final class Ancestry {
  private final org.apache.iceberg.Table base;
  private final long pinned;

  Ancestry(org.apache.iceberg.Table base, long pinned) {
    this.base = base;
    this.pinned = pinned;
  }

  /** The account as it is for the pinned snapshot; null when that does not come from the account's own. */
  Account carried(Account account) throws Exception {
    Account now = account;
    Long id = Long.valueOf(pinned);
    boolean lost = false;
    while (id != null && id.longValue() != account.baseSnapshotId) {
      Snapshot snapshot = base.snapshot(id.longValue());
      if (snapshot == null) return null;
      if (!"replace".equals(snapshot.operation())) {
        List stamped = stamped(snapshot.summary());
        if (stamped.isEmpty()) lost = true;
        else now = now.without(stamped);
      }
      id = snapshot.parentId();
    }
    if (id == null) return null;
    return lost ? new Account(account.baseSnapshotId, new ArrayList(), true) : now;
  }

  /** Batches that an ingestion changed in this snapshot, and nothing else with them. */
  private static List stamped(Map summary) throws Exception {
    ArrayList keys = new ArrayList();
    String stamps = (String) summary.get("relayout.batches");
    if (stamps == null || !"base".equals(summary.get("relayout.layout"))) return keys;
    List told = Json.list(stamps);
    for (int i = 0; i < told.size(); i++) keys.add(((Map) told.get(i)).get("batch"));
    return keys;
  }
}

/** An alternate as it was found for one pinned base snapshot. */
final class Candidate {
  final String table;
  String name = "";
  Identifier identifier;
  SparkTable pinned;
  Account account;
  Map baseFields;

  /** Why it cannot serve at all; null when it can. */
  String code;

  long foundAt;

  Candidate(String table) {
    this.table = table;
  }

  public String toString() {
    return table;
  }

  /** Why the columns that a query uses are not all there as the base has them; null when they are. */
  String lacks(Site site) {
    org.apache.iceberg.Table base = site.base.table();
    Schema wanted = site.relation.timeTravelSpec().isDefined()
        ? SnapshotUtil.schemaFor(base, site.base.snapshotId().longValue()) : base.schema();
    org.apache.iceberg.Table own = pinned.table();
    Schema then = SnapshotUtil.schemaFor(own, pinned.snapshotId().longValue());
    StructType types = pinned.schema();
    ArrayList columns = new ArrayList(site.used);
    if (!account.whole()) columns.addAll(Split.columns(account, site.relation));
    for (int i = 0; i < columns.size(); i++) {
      AttributeReference column = (AttributeReference) columns.get(i);
      Option place = types.getFieldIndex(column.name());
      // Names may have moved from one column to another; field ids never do.
      if (place.isEmpty() || !same(column, wanted, then, own.schema())) return "NO_COLUMN";
      DataType type = types.fields()[((Integer) place.get()).intValue()].dataType();
      if (!type.asNullable().equals(column.dataType().asNullable())) return "OTHER_TYPE";
    }
    return null;
  }

  /** Whether the alternate's column was filled from this very column of the base, and has not moved since. */
  private boolean same(AttributeReference column, Schema wanted, Schema then, Schema now) {
    String name = column.name();
    NestedField asked = wanted.findField(name);
    NestedField held = then.findField(name);
    NestedField kept = now.findField(name);
    Number told = (Number) baseFields.get(name);
    if (asked == null || held == null || kept == null || told == null) return false;
    if (asked.type().isPrimitiveType()) return asked.fieldId() == told.intValue() && held.fieldId() == kept.fieldId();
    return sameBelow(name, TypeUtil.indexByName(wanted.asStruct()), baseFields)
        && sameBelow(name, TypeUtil.indexByName(then.asStruct()), TypeUtil.indexByName(now.asStruct()));
  }

  private static boolean sameBelow(String name, Map one, Map other) {
    return below(name, one).equals(below(name, other));
  }

  private static Map below(String name, Map ids) {
    HashMap found = new HashMap();
    Iterator entries = ids.entrySet().iterator();
    while (entries.hasNext()) {
      Map.Entry entry = (Map.Entry) entries.next();
      String full = (String) entry.getKey();
      if (full.equals(name) || full.startsWith(name + ".")) {
        found.put(full, Long.valueOf(((Number) entry.getValue()).longValue()));
      }
    }
    return found;
  }
}

/** Finds the alternates of a base and how fresh they are for the snapshot that a query pinned. */
final class Candidates {
  static final String ALTERNATES = "relayout.alternates";
  private static final String ALTERNATE_OF = "relayout.alternate-of";
  private static final String ALTERNATE_NAME = "relayout.alternate-name";
  private static final String BASE_FIELDS = "relayout.base-fields";

  /** That an alternate holds a snapshot stays true; how long it is taken for granted that it is still there. */
  private static final long TRUSTED_NANOS = TimeUnit.SECONDS.toNanos(2);

  static final Map KNOWN = Collections.synchronizedMap(new Newest(256));

  /** All of them, in the order of their names; those not found within the budget say so. */
  static List of(final Site site) throws Exception {
    String told = (String) site.base.table().properties().get(ALTERNATES);
    ArrayList found = new ArrayList();
    ArrayList waiting = new ArrayList();
    if (site.wish.layout.equals("base")) return found;
    Iterator names = new TreeMap(named(told)).keySet().iterator();
    while (names.hasNext()) {
      final String name = (String) names.next();
      Candidate known = (Candidate) KNOWN.get(key(site, name));
      if (known != null && !site.wish.explained && System.nanoTime() - known.foundAt < TRUSTED_NANOS) {
        found.add(known);
        continue;
      }
      Candidate missing = new Candidate(name);
      missing.code = "BUDGET";
      found.add(missing);
      waiting.add(Costs.WORKERS.submit(new Callable() {
        public Object call() {
          SparkSession.setActiveSession(site.session);
          try {
            return look(site, name);
          } finally {
            SparkSession.clearActiveSession();
          }
        }
      }));
    }
    int next = 0;
    for (int i = 0; i < found.size(); i++) {
      if (!"BUDGET".equals(((Candidate) found.get(i)).code)) continue;
      try {
        found.set(i, ((Future) waiting.get(next++)).get(site.wish.left(), TimeUnit.NANOSECONDS));
      } catch (TimeoutException late) {
        RoutingRule.LOG.debug("routing budget spent before {} was found", found.get(i));
      }
    }
    return found;
  }

  private static Map named(String told) {
    HashMap names = new HashMap();
    String[] parts = told.split(",");
    for (int i = 0; i < parts.length; i++) {
      if (!parts[i].trim().isEmpty()) names.put(parts[i].trim(), Boolean.TRUE);
    }
    return names;
  }

  private static String key(Site site, String name) {
    return site.base.table().uuid() + "/" + site.base.snapshotId() + "/" + name;
  }

  static Candidate look(Site site, String name) {
    Candidate candidate = new Candidate(name);
    try {
      fill(candidate, site);
    } catch (Throwable failure) {
      RoutingRule.LOG.warn("alternate {} is left out: {}", name, failure.toString());
      candidate.code = "UNREADABLE";
    }
    candidate.foundAt = System.nanoTime();
    String key = key(site, name);
    if (candidate.code != null) KNOWN.remove(key);
    else KNOWN.put(key, candidate);
    return candidate;
  }

  private static void fill(Candidate candidate, Site site) throws Exception {
    Identifier home = (Identifier) site.relation.identifier().get();
    candidate.identifier = Identifier.of(home.namespace(), candidate.table);
    SparkTable loaded;
    try {
      loaded = (SparkTable) ((TableCatalog) site.relation.catalog().get()).loadTable(candidate.identifier);
    } catch (org.apache.spark.sql.catalyst.analysis.NoSuchTableException missing) {
      candidate.code = "MISSING";
      return;
    }
    org.apache.iceberg.Table own = loaded.table();
    org.apache.iceberg.Table base = site.base.table();
    if (!base.uuid().toString().equals(own.properties().get(ALTERNATE_OF))) {
      candidate.code = "NOT_ITS_ALTERNATE";
      return;
    }
    candidate.name = String.valueOf(own.properties().get(ALTERNATE_NAME));
    String fields = (String) own.properties().get(BASE_FIELDS);
    candidate.baseFields = fields == null ? new HashMap() : Json.map(fields);
    Long snapshotId = freshest(candidate, own, new Ancestry(base, site.base.snapshotId().longValue()));
    if (snapshotId == null) candidate.code = "STALE";
    else candidate.pinned = SparkTable.create(own, TimeTravel.version(snapshotId.toString()));
  }

  /** The newest snapshot that is whole for the pinned base snapshot, else the newest of any use; else null. */
  private static Long freshest(Candidate candidate, org.apache.iceberg.Table own, Ancestry ancestry)
      throws Exception {
    Long partly = null;
    Snapshot serving = own.currentSnapshot();
    Snapshot snapshot = serving;
    while (snapshot != null) {
      Account told = Account.of(snapshot.summary());
      Snapshot parent = snapshot.parentId() == null ? null : own.snapshot(snapshot.parentId().longValue());
      if (told != null) {
        Account carried = ancestry.carried(told);
        // Who commits that nothing may be served has a reason that older snapshots may share.
        if (carried != null && told.empty()) return partly;
        if (carried != null && !carried.empty()) {
          if (carried.whole() || partly == null) candidate.account = carried;
          if (carried.whole()) return Long.valueOf(serving.snapshotId());
          if (partly == null) partly = Long.valueOf(serving.snapshotId());
        }
        serving = parent;
      } else if (!"replace".equals(snapshot.operation())) {
        serving = parent;
      }
      snapshot = parent;
    }
    return partly;
  }
}

/** Conditions that say which rows come from the alternate and which from the base; no row meets both or neither. */
final class Split {
  final List alternate;
  final List base;

  private Split(List alternate, List base) {
    this.alternate = alternate;
    this.base = base;
  }

  /** Null when a batch column or value cannot be expressed. */
  static Split of(Account account, DataSourceV2Relation relation) {
    ArrayList listed = new ArrayList();
    ArrayList others = new ArrayList();
    for (int i = 0; i < account.batches.size(); i++) {
      Expression batch = batch((Map) account.batches.get(i), relation);
      if (batch == null) return null;
      listed.add(batch);
      others.add(new Not(batch));
    }
    ArrayList any = new ArrayList();
    any.add(disjunction(listed, 0, listed.size()));
    return account.only ? new Split(any, others) : new Split(others, any);
  }

  /** The batch columns, as far as the relation has them. */
  static List columns(Account account, DataSourceV2Relation relation) {
    LinkedHashMap found = new LinkedHashMap();
    for (int i = 0; i < account.batches.size(); i++) {
      Iterator names = ((Map) account.batches.get(i)).keySet().iterator();
      while (names.hasNext()) {
        AttributeReference column = column((String) names.next(), relation);
        if (column != null) found.put(column.name(), column);
      }
    }
    return new ArrayList(found.values());
  }

  private static AttributeReference column(String name, DataSourceV2Relation relation) {
    Iterator columns = JavaConverters.asJava(relation.output()).iterator();
    while (columns.hasNext()) {
      AttributeReference column = (AttributeReference) columns.next();
      if (column.name().equals(name)) return column;
    }
    return null;
  }

  private static Expression batch(Map key, DataSourceV2Relation relation) {
    Expression all = null;
    Iterator entries = key.entrySet().iterator();
    while (entries.hasNext()) {
      Map.Entry entry = (Map.Entry) entries.next();
      AttributeReference column = column((String) entry.getKey(), relation);
      if (column == null) return null;
      Expression one;
      if (entry.getValue() == null) {
        one = new IsNull(column);
      } else {
        Literal value = literal(entry.getValue(), column.dataType());
        if (value == null) return null;
        one = new EqualNullSafe(column, value);
      }
      all = all == null ? one : new And(all, one);
    }
    return all;
  }

  /** Values stand as text wherever JSON has no type for them; null when it is no value of the column's type. */
  private static Literal literal(Object value, DataType type) {
    String kind = type.typeName();
    if (kind.equals("binary") || kind.startsWith("char") || kind.startsWith("varchar")) return null;
    // Two zeros are equal to Spark and not to the bounds of files: a row could be lost between the branches.
    if (kind.equals("float") || kind.equals("double")) return null;
    Object plain = value instanceof Number || value instanceof Boolean ? value.toString() : value;
    if (!(plain instanceof String)) return null;
    Object typed = new Cast(Literal$.MODULE$.apply(plain), type, new Some("UTC"), EvalMode.TRY()).eval(null);
    return typed == null ? null : new Literal(typed, type);
  }

  /** Balanced, so that many batches do not make a deep tree. */
  private static Expression disjunction(List each, int from, int to) {
    if (to - from == 1) return (Expression) each.get(from);
    int middle = (from + to) / 2;
    return new Or(disjunction(each, from, middle), disjunction(each, middle, to));
  }
}

/** A query answered by two layouts: each branch has the query's own conditions, because pushdown has already run. */
final class Hybrid {
  static LogicalPlan plan(Site site, DataSourceV2Relation other) {
    DataSourceV2Relation again = (DataSourceV2Relation) site.relation.newInstance();
    HashMap renamed = new HashMap();
    List before = JavaConverters.asJava(site.relation.output());
    List after = JavaConverters.asJava(again.output());
    for (int i = 0; i < before.size(); i++) renamed.put(((Attribute) before.get(i)).exprId(), after.get(i));
    ArrayList taken = new ArrayList();
    for (int i = 0; i < before.size(); i++) {
      Attribute column = (Attribute) before.get(i);
      if (site.above.taken == null || site.above.taken.contains(column)) taken.add(column);
    }
    // A relation without columns has no place in a union; count(*) takes none.
    if (taken.isEmpty()) taken.add(before.get(0));
    ArrayList takenAgain = new ArrayList();
    for (int i = 0; i < taken.size(); i++) takenAgain.add(renamed.get(((Attribute) taken.get(i)).exprId()));
    ArrayList branches = new ArrayList();
    Split split = site.chosen.split;
    branches.add(branch(taken, Site.joined(site.conditions, split.alternate), other, new HashMap()));
    branches.add(branch(takenAgain, Site.joined(site.conditions, split.base), again, renamed));
    return new Union(seq(branches), false, false);
  }

  private static LogicalPlan branch(List columns, List conditions, LogicalPlan relation, final Map renamed) {
    Expression all = null;
    for (int i = 0; i < conditions.size(); i++) {
      Expression one = (Expression) conditions.get(i);
      all = all == null ? one : new And(all, one);
    }
    Expression own = (Expression) all.transform(new AbstractPartialFunction() {
      public boolean isDefinedAt(Object node) {
        return node instanceof AttributeReference && renamed.containsKey(((AttributeReference) node).exprId());
      }

      public Object applyOrElse(Object node, scala.Function1 otherwise) {
        return isDefinedAt(node) ? renamed.get(((AttributeReference) node).exprId()) : otherwise.apply(node);
      }
    });
    return new Project(seq(columns), new Filter(own, relation));
  }

  private static scala.collection.immutable.Seq seq(List items) {
    return JavaConverters.asScala(items).toList();
  }
}

/** The conditions that a filter joins with AND. */
final class Conjuncts {
  static List of(Expression condition) {
    ArrayList found = new ArrayList();
    add(condition, found);
    return found;
  }

  private static void add(Expression condition, List found) {
    if (condition instanceof And) {
      add(((And) condition).left(), found);
      add(((And) condition).right(), found);
    } else {
      found.add(condition);
    }
  }
}

/** Keeps what was decided, when somebody on this thread asked for an explanation. */
final class Recorder {
  static final ThreadLocal TOLD = new ThreadLocal();

  private final List told = (List) TOLD.get();

  boolean explains() {
    return told != null;
  }

  void failed(Throwable failure) {
    if (told == null) return;
    LinkedHashMap entry = new LinkedHashMap();
    entry.put("failed", failure.toString());
    told.add(entry);
  }

  void stayed(Site site, String code) throws Exception {
    if (told == null) return;
    ArrayList only = new ArrayList();
    only.add(site.baseOffer);
    if (site.baseOffer.parts.size() == 1 && ((Part) site.baseOffer.parts.get(0)).key != null) {
      Costs.find(only, site.openCost(), site.wish);
    }
    site.baseOffer.code = code;
    site.nanos = System.nanoTime() - site.began;
    chose(site);
  }

  void chose(Site site) {
    if (told == null) return;
    LinkedHashMap entry = new LinkedHashMap();
    entry.put("table", site.base.name());
    entry.put("snapshot_id", site.base.snapshotId());
    entry.put("filter", Spark3Util.describe(((Part) site.baseOffer.parts.get(0)).condition));
    entry.put("chosen", site.chosen == null ? "base" : site.chosen.candidate.table);
    entry.put("hybrid", Boolean.valueOf(site.chosen != null && site.chosen.split != null));
    entry.put("micros", Long.valueOf(site.nanos / 1000));
    ArrayList layouts = new ArrayList();
    layouts.add(layout(site.baseOffer));
    for (int i = 0; i < site.offers.size(); i++) layouts.add(layout((Offer) site.offers.get(i)));
    entry.put("layouts", layouts);
    told.add(entry);
  }

  private static Map layout(Offer offer) {
    LinkedHashMap entry = new LinkedHashMap();
    Candidate candidate = offer.candidate;
    entry.put("layout", candidate == null ? "base" : candidate.table);
    entry.put("name", candidate == null ? "" : candidate.name);
    entry.put("freshness", freshness(candidate));
    entry.put("batches", candidate == null || candidate.account == null
        ? new ArrayList() : candidate.account.batches);
    entry.put("only", Boolean.valueOf(candidate != null && candidate.account != null && candidate.account.only));
    entry.put("code", offer.code);
    entry.put("files", offer.known() ? Long.valueOf(offer.cost.files) : null);
    entry.put("bytes", offer.known() ? Long.valueOf(offer.cost.bytes) : null);
    entry.put("cost", offer.known() ? Long.valueOf(offer.cost()) : null);
    return entry;
  }

  private static String freshness(Candidate candidate) {
    if (candidate == null) return "fresh";
    if (candidate.pinned != null) return candidate.account.whole() ? "fresh" : "partly";
    return "STALE".equals(candidate.code) ? "stale" : "unknown";
  }
}

/** How often alternates were looked at, could serve, and served: since the last report, and for Spark's metrics. */
final class Counts {
  private static final Map SINCE = new HashMap();
  private static final ArrayDeque CHOICES = new ArrayDeque();
  private static final int KEPT_CHOICES = 1000;
  private static final MetricRegistry METRICS = new MetricRegistry();
  private static boolean registered;

  static void count(Site site) {
    register();
    METRICS.timer("choice").update(site.nanos, TimeUnit.NANOSECONDS);
    synchronized (CHOICES) {
      if (CHOICES.size() == KEPT_CHOICES) CHOICES.removeFirst();
      CHOICES.addLast(Double.valueOf(site.nanos / 1e6));
    }
    for (int i = 0; i < site.offers.size(); i++) {
      Offer offer = (Offer) site.offers.get(i);
      boolean matched = offer.known();
      add(site, offer.candidate.table, matched, offer == site.chosen);
    }
  }

  private static void add(Site site, String alternate, boolean matched, boolean used) {
    synchronized (SINCE) {
      String key = site.base.table().uuid() + "/" + alternate;
      long[] counts = (long[]) SINCE.get(key);
      if (counts == null) {
        counts = new long[4];
        SINCE.put(key, counts);
      }
      counts[0]++;
      if (matched) counts[1]++;
      if (used) {
        counts[2]++;
        counts[3] = System.currentTimeMillis();
      }
    }
    METRICS.counter(alternate + ".considered").inc();
    if (matched) METRICS.counter(alternate + ".matched").inc();
    if (used) METRICS.counter(alternate + ".used").inc();
  }

  static List take() {
    ArrayList told = new ArrayList();
    synchronized (SINCE) {
      Iterator entries = SINCE.entrySet().iterator();
      while (entries.hasNext()) {
        Map.Entry entry = (Map.Entry) entries.next();
        String[] names = ((String) entry.getKey()).split("/");
        long[] counts = (long[]) entry.getValue();
        LinkedHashMap line = new LinkedHashMap();
        line.put("base", names[0]);
        line.put("layout", names[1]);
        line.put("considered", Long.valueOf(counts[0]));
        line.put("matched", Long.valueOf(counts[1]));
        line.put("used", Long.valueOf(counts[2]));
        line.put("last_used_ms", Long.valueOf(counts[3]));
        told.add(line);
      }
      SINCE.clear();
    }
    return told;
  }

  static List takeChoices() {
    synchronized (CHOICES) {
      ArrayList told = new ArrayList(CHOICES);
      CHOICES.clear();
      return told;
    }
  }

  private static synchronized void register() {
    if (registered || SparkEnv.get() == null) return;
    registered = true;
    SparkEnv.get().metricsSystem().registerSource(new Source() {
      public String sourceName() {
        return "relayout.routing";
      }

      public MetricRegistry metricRegistry() {
        return METRICS;
      }
    });
  }
}

/** JSON in plain lists and maps. */
final class Json {
  private static final ObjectMapper MAPPER = new ObjectMapper();

  static String text(Object value) throws Exception {
    return MAPPER.writeValueAsString(value);
  }

  static List list(String text) throws Exception {
    return (List) MAPPER.readValue(text, ArrayList.class);
  }

  static Map map(String text) throws Exception {
    return (Map) MAPPER.readValue(text, LinkedHashMap.class);
  }
}
