/* SPDX-License-Identifier: Apache-2.0 */
/* db_schema.h - the migrations, from src/store/schema/NNN_name.sql: the Nth brings a store from version N-1 to N. */
#ifndef BH_STORE_DB_SCHEMA_H
#define BH_STORE_DB_SCHEMA_H

struct bh_migration {
    const char *name, *sql;
};
extern const struct bh_migration bh_migrations[];
extern const unsigned bh_migrations_n;

#endif
